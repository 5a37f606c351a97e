"""What one node asks of a device, as amounts that a linear model prices: launches, bytes, elements, operations.

Amounts are counted from types alone, so that a node can be priced without running or even building it. A column names
what is priced: its kind of work, the unit, and where operators of one kind differ, which of them. A column that was
never measured is priced like its general one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from superopt.cost.fusions import ABSORBED, ALONE
from superopt.cost.kinds import KINDS
from superopt.cost.weights import is_weight
from superopt.ir.graph import Node, Value
from superopt.ir.types import Dim, DType, TensorType

Unit: TypeAlias = Literal["run", "byte", "element", "operation"]
Shape: TypeAlias = tuple[int, ...]

UNKNOWN_SIZE = 16
UNKNOWN_SHAPE = (UNKNOWN_SIZE, UNKNOWN_SIZE, UNKNOWN_SIZE)
_DEEPEST_GUESS = 6
_FILTERS = {"QLinearConv": 3, "QLinearMatMul": 3}  # where weights stand among the operands, when not second


class Column(NamedTuple):
    kind: str
    unit: Unit
    of: str = ""

    @property
    def general(self) -> Column:
        return Column(self.kind, self.unit)

    @property
    def text(self) -> str:
        return " ".join(part for part in self if part)


Amounts: TypeAlias = "tuple[tuple[Column, float], ...]"


@dataclass(frozen=True)
class Measures:
    """Shapes of values, symbols replaced by their sizes; what is unknown counts as if it were small."""

    sizes: Mapping[str, int]

    def shape(self, value: Value | None, depth: int = 0) -> Shape:
        if value is None:
            return ()
        type_ = value.type
        if not isinstance(type_, TensorType) or type_.shape is None:
            return self._guess(value, depth)
        return tuple(self._size(d) for d in type_.shape)

    def elements(self, value: Value | None) -> int:
        return math.prod(self.shape(value)) if value is not None else 0

    def bytes(self, value: Value) -> float:
        type_ = value.type
        bits = type_.dtype.bits if isinstance(type_, TensorType) and type_.dtype is not None else 32
        return self.elements(value) * bits / 8

    def _size(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else self.sizes.get(dim or "", UNKNOWN_SIZE)

    def _guess(self, value: Value, depth: int) -> Shape:
        """Like the largest operand; a product like its two matrices. ONNX itself types no operator of the runtime's."""
        node = value.node
        shapes = [self.shape(v, depth + 1) for v in node.inputs] if node and depth < _DEEPEST_GUESS else []
        if not shapes or node is None or value.index > 0:
            return UNKNOWN_SHAPE if not shapes else ()
        if KINDS.get(node.op) == "product" and len(shapes) > 1 and min(map(len, shapes[:2])) > 1:
            left, right = shapes[:2]
            return (*left[:-1], right[-2 if node.attribute("transB", 0) else -1])
        return shapes[0] if KINDS.get(node.op) in ("attention", "reduction") else max(shapes, key=math.prod)


def amounts(node: Node, measures: Measures, role: str = ALONE) -> Amounts:
    """What a run-time node costs by itself, absorbed by a neighbour, or as another operator that it is the end of."""
    if role == ABSORBED:
        data = [v for v in node.inputs if v is not None and not is_weight(v)]
        what = node.op if len(data) < 2 else f"{node.op} of data"
        return ((Column("absorbed", "byte", what), measures.bytes(node.outputs[0])),)
    op = role or node.op
    kind = KINDS.get(op, "element-wise")
    if kind == "view":
        return ((Column("launch", "run", "view"), 1.0),)
    return ((Column("launch", "run", op), 1.0), *_COUNTERS[kind](node, op, measures))


def _moved(node: Node, measures: Measures) -> float:
    inputs = {v for v in node.inputs if v is not None}
    return sum(map(measures.bytes, inputs)) + sum(map(measures.bytes, node.outputs))


def _typed(node: Node, style: str) -> str:
    """With the element type unless that is float32."""
    result = node.outputs[0].tensor_type
    dtype = None if result is None else result.dtype
    return style if dtype in (None, DType.FLOAT32) else f"{style} {dtype}"


def _elementwise(node: Node, op: str, measures: Measures) -> Amounts:
    moved = (Column("element-wise", "byte", _typed(node, op)), _moved(node, measures))
    return (moved, *_broadcast(node, measures))


def _broadcast(node: Node, measures: Measures) -> Amounts:
    """Operands of unequal shapes are combined stretch by stretch: over the last axes that all of them vary along, or
    that all but one lack. A last axis of size 1 under axes that are broadcast makes every element a stretch."""
    shape = measures.shape(node.outputs[0])
    operands = [s for s in map(measures.shape, node.inputs) if s and s != shape]
    if not operands or not shape:
        return ()
    span, pattern = 1, None
    for back in range(1, len(shape) + 1):
        size = shape[-back]
        varies = [len(s) >= back and s[-back] == size for s in operands]
        if pattern is not None and varies != pattern:
            break
        span, pattern = span * size, varies
    return ((Column("piece", "run", "broadcast"), math.prod(shape) / max(1, span)),)


def _function(node: Node, op: str, measures: Measures) -> Amounts:
    if op == "Pow" and node.inputs[1] is not None and math.prod(measures.shape(node.inputs[1])) == 1:
        op = "Pow of one exponent"
    elements = float(measures.elements(node.outputs[0]))
    moved = (Column("element-wise", "byte", "function"), _moved(node, measures))
    return ((Column("function", "element", _typed(node, op)), elements), moved)


def _movement(node: Node, op: str, measures: Measures) -> Amounts:
    """What leaves is read and written once; the rest of a Slice, Gather or Split is never touched. Each stretch of
    memory that is copied in one go has a price of its own."""
    written = sum(map(measures.bytes, node.outputs))
    elements = sum(map(measures.elements, node.outputs))
    kept = _kept_together(node, op, measures)
    if kept <= 1:
        return ((Column("movement", "element", _typed(node, op)), float(elements)),)
    bytes_ = Column("movement", "byte", _typed(node, op)), 2.0 * written
    return (bytes_, (Column("piece", "run"), elements / kept))


def _kept_together(node: Node, op: str, measures: Measures) -> int:
    """How many neighbouring elements stay neighbours."""
    shape = measures.shape(node.outputs[0])
    first = measures.shape(node.inputs[0] if node.inputs else None)
    if op == "Transpose":
        perm = node.attribute("perm")
        order = perm if isinstance(perm, tuple) else tuple(reversed(range(len(shape))))
        moved = [i for i, axis in enumerate(order) if i != axis]
        return math.prod(shape[max(moved) + 1 :]) if moved and len(order) == len(shape) else max(1, math.prod(shape))
    if op in ("Concat", "Split"):
        axis = int(node.attribute("axis", 0))
        smallest = min((measures.shape(v) for v in (node.inputs if op == "Concat" else node.outputs)), key=math.prod)
        return max(1, math.prod(smallest[axis:]))
    if op == "Gather":
        return max(2, math.prod(first[int(node.attribute("axis", 0)) + 1 :]))
    if len(first) != len(shape):
        return max(2, math.prod(shape[-1:]))
    changed = [i for i, (a, b) in enumerate(zip(first, shape, strict=True)) if a != b]
    if not changed:
        return math.prod(shape)
    return math.prod(shape[max(changed) + 1 :]) if max(changed) + 1 < len(shape) else shape[-1]


def _reduction(node: Node, op: str, measures: Measures) -> Amounts:
    """Neighbours are quickly combined; what lies far apart is not."""
    first = node.inputs[0] if node.inputs else None
    shape = measures.shape(first)
    axes = _axes(node, op)
    along = not shape or axes is None or len(shape) - 1 in {axis % len(shape) for axis in axes}
    read = max(math.prod(shape), measures.elements(node.outputs[0]))
    return ((Column("reduction", "element", _typed(node, op if along else f"{op} across")), float(read)),)


def _axes(node: Node, op: str) -> tuple[int, ...] | None:
    """Axes that are combined; None where that is all of them, or where the last is always among them."""
    if op in ("Softmax", "LogSoftmax", "ArgMax", "ArgMin", "LpNormalization", "TopK"):
        return (int(node.attribute("axis", -1)),)
    axes = node.attribute("axes")
    given = node.inputs[1] if op.startswith("Reduce") and len(node.inputs) > 1 else None
    if axes is None and given is not None and given.constant is not None and given.constant.readable:
        axes = tuple(int(axis) for axis in given.constant.numpy().reshape(-1))
    return axes or None


def _pool(node: Node, op: str, measures: Measures) -> Amounts:
    window = math.prod(node.attribute("kernel_shape", (1,)))
    return ((Column("pool", "element", _typed(node, op)), float(measures.elements(node.outputs[0]) * window)),)


def _convolution(node: Node, op: str, measures: Measures) -> Amounts:
    if op == "ConvTranspose":
        return _transposed_convolution(node, op, measures)
    filters = measures.shape(node.inputs[_FILTERS.get(op, 1)])
    group = int(node.attribute("group", 1))
    window = math.prod(filters[2:])
    operations = 2.0 * measures.elements(node.outputs[0]) * math.prod(filters[1:])
    grouping = (Column("convolution", "run", "group"), float(group) if group > 1 else 0.0)
    weights = node.inputs[_FILTERS.get(op, 1)]
    fixed = measures.bytes(weights) if weights is not None else 0.0
    moved = (
        (Column("convolution", "byte", "data"), _moved(node, measures) - fixed),
        (Column("convolution", "byte", "weights"), fixed),
    )
    if group > 1 and filters[1:2] == (1,):
        style = f"depthwise {window}" if window in (1, 9) else "depthwise"
        return ((Column("convolution", "operation", _typed(node, style)), operations), *moved, grouping)
    style = "pointwise" if window == 1 else "dense"
    # The input is laid out for a matrix product once, for all the filters that read it.
    unfolded = operations / (2.0 * max(1, filters[0] // group)) if filters else 0.0
    return (
        (Column("convolution", "operation", _typed(node, style)), operations),
        (Column("convolution", "element", style), unfolded),
        *moved,
        grouping,
    )


def _transposed_convolution(node: Node, op: str, measures: Measures) -> Amounts:
    first, filters = node.inputs[0], measures.shape(node.inputs[1])
    operations = 2.0 * (measures.elements(first) if first is not None else 0) * math.prod(filters[1:])
    return (
        (Column("convolution", "operation", "transposed"), operations),
        (Column("convolution", "byte", "transposed"), _moved(node, measures)),
    )


def _product(node: Node, op: str, measures: Measures) -> Amounts:
    """Both matrices may have leading axes; the inner size is the first one's last, or its first when transposed."""
    left = measures.shape(node.inputs[0])
    second = _FILTERS.get(op, 1)
    transposed = bool(node.attribute("transA", 0))
    inner = left[-2 if transposed and len(left) > 1 else -1] if left else 1
    right = node.inputs[second]
    style = "weights" if right is not None and is_weight(right) else "data"
    operations = 2.0 * measures.elements(node.outputs[0]) * inner
    return (
        (Column("product", "operation", _typed(node, style)), operations),
        (Column("product", "byte", style), _moved(node, measures)),
    )


def _einsum(node: Node, op: str, measures: Measures) -> Amounts:
    equation = str(node.attribute("equation", "")).replace(" ", "")
    sizes: dict[str, int] = {}
    for labels, value in zip(equation.split("->")[0].split(","), node.inputs, strict=False):
        for label, size in zip(reversed(labels), reversed(measures.shape(value)), strict=False):
            sizes[label] = max(size, sizes.get(label, 1))
    return (
        (Column("product", "operation", "data"), 2.0 * math.prod(sizes.values())),
        (Column("product", "byte", "data"), _moved(node, measures)),
    )


def _attention(node: Node, op: str, measures: Measures) -> Amounts:
    """Queries and keys, then probabilities and values; with the projections where the operator holds them."""
    query, result = measures.shape(node.inputs[0]), node.outputs[0]
    projects = bool(node.domain) and op == "Attention"
    second = measures.shape(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] is not None else query
    keys = query if projects else second
    length = keys[-2] if len(keys) > 1 else 1
    operations = 4.0 * measures.elements(result) * length
    projection = 2.0 * math.prod(query) * second[-1] if projects and second else 0.0
    return (
        (Column("attention", "operation", op), operations),
        (Column("product", "operation", "weights"), projection),
    )


def _recurrent(node: Node, op: str, measures: Measures) -> Amounts:
    first, weights = measures.shape(node.inputs[0]), [v for v in node.inputs[1:3] if v is not None]
    steps = first[0] if first else 1
    batch = first[1] if len(first) > 1 else 1
    operations = 2.0 * steps * batch * sum(map(measures.elements, weights))
    return (
        (Column("recurrent", "operation", op), operations),
        (Column("recurrent", "run", op), float(steps)),
    )


_Counter: TypeAlias = Callable[[Node, str, Measures], Amounts]
_COUNTERS: dict[str, _Counter] = {
    "element-wise": _elementwise,
    "function": _function,
    "movement": _movement,
    "reduction": _reduction,
    "pool": _pool,
    "convolution": _convolution,
    "product": _product,
    "einsum": _einsum,
    "attention": _attention,
    "recurrent": _recurrent,
}
