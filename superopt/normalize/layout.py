"""Identities of operators that move elements or rename axes: Transpose, Reshape, Slice, Pad, Expand and their like."""

from __future__ import annotations

from superopt.ir.graph import Node, Value, make_node
from superopt.ir.types import TensorType
from superopt.normalize.rule import Replacement, Result, Rule, broadcast_keeps, rank_of, same_static_shape
from superopt.normalize.scope import Scope

TO_THE_END = 2**31 - 1
"""An end of a slice from here on means the end of the axis."""
_RENAMES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")
"""Operators that change the shape and keep every element in its place."""


def _perm(node: Node, rank: int | None) -> tuple[int, ...] | None:
    perm = node.attribute("perm")
    if perm is None and rank is not None:
        return tuple(reversed(range(rank)))
    return perm if isinstance(perm, tuple) else None


def _transpose_identity(node: Node, scope: Scope) -> Result:
    """Axes stay where they are, or only axes of size 1 change places with one another."""
    x = node.inputs[0]
    if x is None:
        return None
    perm = _perm(node, rank_of(x.type))
    if perm is None:
        return None
    if perm == tuple(range(len(perm))):
        return x
    shape = x.tensor_type.static_shape if x.tensor_type is not None else None
    if shape is None or len(shape) != len(perm) or tuple(shape[i] for i in perm) != shape:
        return None
    moving = [i for i in perm if shape[i] != 1]
    return x if moving == sorted(moving) else None


def _transpose_of_transpose(node: Node, scope: Scope) -> Result:
    inner = scope.operator(node.inputs[0], "Transpose")
    if inner is None or inner.inputs[0] is None:
        return None
    x = inner.inputs[0]
    if node.attribute("perm") is None and inner.attribute("perm") is None:
        return x
    rank = rank_of(x.type)
    first, second = _perm(inner, rank), _perm(node, rank)
    if first is None or second is None or len(first) != len(second):
        return None
    both = tuple(first[i] for i in second)
    if both == tuple(range(len(both))):
        return x
    if scope.uses[Value(inner)] > 1:
        return None  # the inner one stays: nothing is saved
    return Replacement(make_node("Transpose", (x,), {"perm": both}, node.types))


def _same_shape(node: Node, scope: Scope) -> Result:
    x = node.inputs[0]
    return x if x is not None and same_static_shape(x.type, node.types[0]) else None


def _reshape_same(node: Node, scope: Scope) -> Result:
    """A target that repeats the shape: each dim copied by 0 or given by number, at most one left to be worked out."""
    x = node.inputs[0]
    if x is None or same_static_shape(x.type, node.types[0]):
        return x
    dims = scope.integers(node.inputs[1])
    shape = x.tensor_type.shape if x.tensor_type is not None else None
    if dims is None or shape is None or len(dims) != len(shape) or node.attribute("allowzero", 0):
        return None
    open_dims = [i for i, dim in enumerate(dims) if dim != 0 and dim != shape[i]]
    return x if not open_dims or (len(open_dims) == 1 and dims[open_dims[0]] == -1) else None


def _reshape_of_reshape(node: Node, scope: Scope) -> Result:
    """The result depends on the elements and the target alone, unless a 0 in the target copies a dim."""
    inner = scope.operator(node.inputs[0], *_RENAMES)
    dims = scope.integers(node.inputs[1])
    if inner is None or dims is None or (0 in dims and not node.attribute("allowzero", 0)):
        return None
    inputs = (inner.inputs[0], node.inputs[1])
    return Replacement(make_node("Reshape", inputs, node.attributes, node.types), like=node)


def _flatten_same(node: Node, scope: Scope) -> Result:
    x = node.inputs[0]
    if x is None or same_static_shape(x.type, node.types[0]):
        return x
    return x if rank_of(x.type) == 2 and node.attribute("axis", 1) in (1, -1) else None


def _axes(node: Node, scope: Scope) -> tuple[int, ...] | None:
    if scope.opset < 13:
        axes = node.attribute("axes")
        return axes if isinstance(axes, tuple) else None
    return scope.integers(node.inputs[1]) if len(node.inputs) > 1 else None


def _squeeze_pair(node: Node, scope: Scope) -> Result:
    """Squeeze undoes Unsqueeze on the same axes and the other way round: axes are numbered in the longer shape."""
    inner = scope.operator(node.inputs[0], "Unsqueeze" if node.op == "Squeeze" else "Squeeze")
    if inner is None or inner.inputs[0] is None:
        return None
    mine, its = _axes(node, scope), _axes(inner, scope)
    if mine is None or its is None or len(set(mine)) != len(mine) or len(mine) != len(its):
        return None
    if set(mine) != set(its):
        rank = rank_of(inner.inputs[0].type)
        if rank is None:
            return None
        full = rank + len(its) if inner.op == "Unsqueeze" else rank
        if {a % full for a in mine} != {a % full for a in its}:
            return None
    return inner.inputs[0]


def _pad_nothing(node: Node, scope: Scope) -> Result:
    if scope.opset < 11:
        pads = node.attribute("pads")
    else:
        pads = scope.integers(node.inputs[1])
    return node.inputs[0] if isinstance(pads, tuple) and not any(pads) else None


def _slice_everything(node: Node, scope: Scope) -> Result:
    x = node.inputs[0]
    bounds = _slice_bounds(node, scope)
    if x is None or bounds is None:
        return None
    starts, ends, axes, steps = bounds
    if not len(starts) == len(ends) == len(axes) == len(steps) or any(step != 1 for step in steps):
        return None
    if same_static_shape(x.type, node.types[0]):
        return x
    shape = x.tensor_type.shape if x.tensor_type is not None else None
    for start, end, axis in zip(starts, ends, axes, strict=True):
        size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
        if start != 0 or not (end >= TO_THE_END or (isinstance(size, int) and end >= size)):
            return None
    return x


def _slice_bounds(node: Node, scope: Scope) -> tuple[tuple[int, ...], ...] | None:
    """Starts, ends, axes and steps."""
    if scope.opset < 10:
        found = [node.attribute(name) for name in ("starts", "ends", "axes")]
    else:
        found = [scope.integers(v) if v is not None else () for v in node.inputs[1:]]
    starts, ends, axes, steps = [*found, *([()] * (4 - len(found)))]
    if not isinstance(starts, tuple) or not isinstance(ends, tuple):
        return None
    if axes is None and scope.opset >= 10:
        return None
    axes = axes or tuple(range(len(starts)))
    if steps is None or not isinstance(axes, tuple):
        return None
    return starts, ends, axes, steps or (1,) * len(starts)


def _expand_nothing(node: Node, scope: Scope) -> Result:
    x = node.inputs[0]
    if x is None or same_static_shape(x.type, node.types[0]):
        return x
    dims = scope.integers(node.inputs[1])
    return x if dims is not None and isinstance(x.type, TensorType) and broadcast_keeps(x.type, dims) else None


def _tile_once(node: Node, scope: Scope) -> Result:
    repeats = scope.integers(node.inputs[1])
    return node.inputs[0] if repeats is not None and all(r == 1 for r in repeats) else None


RULES = (
    Rule("transpose-identity", ("Transpose",), _transpose_identity),
    Rule("transpose-of-transpose", ("Transpose",), _transpose_of_transpose),
    Rule("reshape-same-shape", ("Reshape",), _reshape_same),
    Rule("reshape-of-reshape", ("Reshape",), _reshape_of_reshape),
    Rule("flatten-same-shape", ("Flatten",), _flatten_same),
    Rule("squeeze-same-shape", ("Squeeze", "Unsqueeze"), _same_shape),
    Rule("squeeze-pair", ("Squeeze", "Unsqueeze"), _squeeze_pair),
    Rule("pad-nothing", ("Pad",), _pad_nothing),
    Rule("slice-everything", ("Slice",), _slice_everything),
    Rule("expand-nothing", ("Expand",), _expand_nothing),
    Rule("tile-once", ("Tile",), _tile_once),
)
