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
        return ((Column("absorbed", "byte", node.op), measures.bytes(node.outputs[0])),)
    op = role or node.op
    kind = KINDS.get(op, "element-wise")
    if kind == "view":
        return ((Column("launch", "run", "view"), 1.0),)
    return ((Column("launch", "run", op), 1.0), *_COUNTERS[kind](node, op, measures))


def _moved(node: Node, measures: Measures) -> float:
    inputs = {v for v in node.inputs if v is not None}
    return sum(map(measures.bytes, inputs)) + sum(map(measures.bytes, node.outputs))


def _variant(node: Node, op: str) -> str:
    """The operator, with its element type unless that is float32."""
    result = node.outputs[0].tensor_type
    dtype = None if result is None else result.dtype
    return op if dtype in (None, DType.FLOAT32) else f"{op}.{dtype}"


def _elementwise(node: Node, op: str, measures: Measures) -> Amounts:
    return ((Column("element-wise", "byte", _variant(node, op)), _moved(node, measures)),)


def _function(node: Node, op: str, measures: Measures) -> Amounts:
    elements = float(measures.elements(node.outputs[0]))
    moved = (Column("element-wise", "byte", "function"), _moved(node, measures))
    return ((Column("function", "element", _variant(node, op)), elements), moved)


def _movement(node: Node, op: str, measures: Measures) -> Amounts:
    """Only what leaves is read of a Slice, Gather or Split; the rest is never touched."""
    written = sum(map(measures.bytes, node.outputs))
    return ((Column("movement", "byte", _variant(node, op)), 2.0 * written),)


def _reduction(node: Node, op: str, measures: Measures) -> Amounts:
    read = max(measures.elements(node.inputs[0] if node.inputs else None), measures.elements(node.outputs[0]))
    return ((Column("reduction", "element", _variant(node, op)), float(read)),)


def _pool(node: Node, op: str, measures: Measures) -> Amounts:
    window = math.prod(node.attribute("kernel_shape", (1,)))
    return ((Column("pool", "element", _variant(node, op)), float(measures.elements(node.outputs[0]) * window)),)


def _convolution(node: Node, op: str, measures: Measures) -> Amounts:
    if op == "ConvTranspose":
        return _transposed_convolution(node, op, measures)
    filters, result = measures.shape(node.inputs[1]), node.outputs[0]
    group = int(node.attribute("group", 1))
    per_element = math.prod(filters[1:])
    if group > 1:
        style = "depthwise" if filters[1:2] == (1,) else "grouped"
    else:
        style = "pointwise" if math.prod(filters[2:]) == 1 else "dense"
    moved = _moved(node, measures)
    operations = 2.0 * measures.elements(result) * per_element
    return ((Column("convolution", "operation", style), operations), (Column("convolution", "byte", style), moved))


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
    transposed = bool(node.attribute("transA", 0))
    inner = left[-2 if transposed and len(left) > 1 else -1] if left else 1
    right = node.inputs[1]
    fixed = right is not None and is_weight(right)
    style = "weights" if fixed else "data"
    operations = 2.0 * measures.elements(node.outputs[0]) * inner
    return (
        (Column("product", "operation", style), operations),
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
    projects = bool(node.domain) and node.op == "Attention"
    second = measures.shape(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] is not None else query
    keys = query if projects else second
    length = keys[-2] if len(keys) > 1 else 1
    operations = 4.0 * measures.elements(result) * length
    projection = 2.0 * math.prod(query) * second[-1] if projects and second else 0.0
    return (
        (Column("product", "operation", "data"), operations),
        (Column("product", "operation", "weights"), projection),
        (Column("product", "byte", "data"), _moved(node, measures)),
    )


def _recurrent(node: Node, op: str, measures: Measures) -> Amounts:
    first, weights = measures.shape(node.inputs[0]), [v for v in node.inputs[1:3] if v is not None]
    steps = first[0] if first else 1
    batch = first[1] if len(first) > 1 else 1
    operations = 2.0 * steps * batch * sum(map(measures.elements, weights))
    return (
        (Column("recurrent", "operation", node.op), operations),
        (Column("recurrent", "run", node.op), float(steps)),
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
