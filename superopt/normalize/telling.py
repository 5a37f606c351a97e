"""Shapes that a run would compute and that types tell already: targets of Reshape, and Expands that change nothing.

Exporters with dynamic axes write `view(batch, length, heads, -1)` as a dozen nodes that take shapes apart and put them
together again. What these compute is followed by `superopt.ir.onnx.solving`; where every size is a number, or that of
the same axis before, the target is a constant, and the nodes are gone.
"""

from __future__ import annotations

import numpy as np

from superopt.ir.graph import Constant, Node, Value, make_node
from superopt.ir.tensor import ArrayTensor
from superopt.ir.types import Dim
from superopt.normalize.rule import Replacement, Result, Rule, dims_of
from superopt.normalize.scope import Scope


def _reshape_told(node: Node, scope: Scope) -> Result:
    before, after = dims_of(node.inputs[0]), dims_of(Value(node))
    if before is None or after is None or scope.tensor(node.inputs[1]) is not None:
        return None
    if before == after:
        return node.inputs[0]
    target = _target(before, after)
    if target is None:
        return None
    told = Constant(ArrayTensor(np.array(target, dtype=np.int64)))
    attributes = {name: value for name, value in node.attributes if name != "allowzero"}
    new = make_node("Reshape", (node.inputs[0], Value(told)), attributes, node.types)
    return Replacement(new, like=node if new.attributes == node.attributes else None, constants=((told, "_target"),))


def _target(before: tuple[Dim, ...], after: tuple[Dim, ...]) -> list[int] | None:
    """Sizes by number, those that stay in their place as 0, and one that is neither as −1, which is not worked out
    beside a 0 where nothing has elements."""
    target: list[int] = []
    for axis, dim in enumerate(after):
        if isinstance(dim, int):
            target.append(dim)
        else:
            target.append(0 if axis < len(before) and before[axis] == dim else -1)
    copied = sum(isinstance(dim, str) and size == 0 for dim, size in zip(after, target, strict=True))
    computed = target.count(-1)
    is_told = target.count(0) == copied and (not computed or (computed == 1 and not copied))
    return target if is_told else None


def _expand_told(node: Node, scope: Scope) -> Result:
    before, after = dims_of(node.inputs[0]), dims_of(Value(node))
    return node.inputs[0] if before is not None and before == after else None


RULES = (
    Rule("reshape-told-by-types", ("Reshape",), _reshape_told),
    Rule("expand-told-by-types", ("Expand",), _expand_told),
)
