"""What follows from types alone: Shape, Size, and single dims taken out of a shape.

Types are inferred from the model's inputs and constants, never read from declarations inside the file.
"""

from __future__ import annotations

import numpy as np

from superopt.ir.graph import Node, Value
from superopt.ir.tensor import Array
from superopt.ir.types import Dim, element_count
from superopt.normalize.scope import Scope


def known_from_types(node: Node, scope: Scope) -> Array | None:
    """The node's first output where types decide it; the node is a pure standard one."""
    if node.domain or len(node.types) != 1:
        return None
    value = Value(node)
    if node.op == "Shape":
        return _integers(shape_dims(value, scope))
    if node.op == "Size":
        type_ = None if node.inputs[0] is None else node.inputs[0].tensor_type
        shape = None if type_ is None else type_.static_shape
        return None if shape is None else np.array(element_count(shape), dtype=np.int64)
    if node.op == "Gather":
        return _gathered(node, scope)
    if node.op == "Slice":
        return _sliced(node, scope)
    return None


def shape_dims(value: Value | None, scope: Scope) -> tuple[Dim, ...] | None:
    """The dims that a Shape node lists, known or not."""
    node = scope.operator(value, "Shape")
    if node is None or node.inputs[0] is None:
        return None
    type_ = node.inputs[0].tensor_type
    if type_ is None or type_.shape is None:
        return None
    return type_.shape[node.attribute("start", 0) : node.attribute("end")]


def _gathered(node: Node, scope: Scope) -> Array | None:
    dims, indices = shape_dims(node.inputs[0], scope), scope.array(node.inputs[1])
    if dims is None or indices is None:
        return None
    if any(not -len(dims) <= i < len(dims) for i in indices.reshape(-1)):
        return None
    found = _integers(tuple(dims[int(i)] for i in indices.reshape(-1)))
    return None if found is None else found.reshape(indices.shape)


def _sliced(node: Node, scope: Scope) -> Array | None:
    dims = shape_dims(node.inputs[0], scope)
    if dims is None or len(node.inputs) < 3:
        return None
    starts, ends = scope.integers(node.inputs[1]), scope.integers(node.inputs[2])
    steps: tuple[int, ...] | None = (1,)
    if len(node.inputs) > 4 and node.inputs[4] is not None:
        steps = scope.integers(node.inputs[4])
    if starts is None or ends is None or steps is None or not len(starts) == len(ends) == len(steps) == 1:
        return None
    return _integers(dims[starts[0] : ends[0]]) if steps == (1,) else None


def _integers(dims: tuple[Dim, ...] | None) -> Array | None:
    if dims is None or not all(isinstance(d, int) for d in dims):
        return None
    return np.array(dims, dtype=np.int64)
