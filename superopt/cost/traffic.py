"""Work that the clock counts by what it touches: element-wise nodes, copies, reductions."""

from __future__ import annotations

import math

from superopt.cost.columns import Amounts, Column
from superopt.cost.measures import Measures, moved, operand, typed
from superopt.cost.turning import order_of, turning
from superopt.ir.graph import Node, Value

_BY_ROW = frozenset(
    f"{skip}{simplified}LayerNormalization" for skip in ("", "Skip") for simplified in ("", "Simplified")
)
"""What has a GPU begin a block of threads for each row, however short."""
_BY_WORDS = ("Concat", "Split")
_WIDEST_WORD = 16  # bytes


def elementwise(node: Node, op: str, measures: Measures) -> Amounts:
    touched = (Column("element-wise", "byte", typed(node, op)), moved(node, measures))
    if op == "BiasAdd":  # a block of threads for each row, too
        rows = math.prod(measures.shape(node.outputs[0])[:-1])
        return (touched, (Column("element-wise", "run", "row"), float(rows)))
    return (touched, *_broadcast(node, measures))


def copied(value: Value, measures: Measures) -> Amounts:
    """From one place in memory to another, as it lies there."""
    return ((Column("launch", "run"), 1.0), (Column("movement", "byte"), 2.0 * measures.bytes(value)))


def channelwise(node: Node, op: str, measures: Measures) -> Amounts:
    """On a GPU the library's kernel for it is not a fast one, and onnxruntime widens weights of 16 bits for it in each
    run anew, four of them."""
    worked = (Column("channel-wise", "element"), float(measures.elements(node.outputs[0])))
    narrow = typed(node, op).endswith("16")
    widened = ((Column("launch", "run", "weights widened"), 1.0),) if narrow else ()
    return (*elementwise(node, op, measures), worked, *widened)


def _broadcast(node: Node, measures: Measures) -> Amounts:
    """Operands of unequal shapes are combined stretch by stretch: over the last axes that all of them vary along, or
    that all but one lack. A last axis of size 1 under axes that are broadcast makes every element a stretch. A GPU
    works out for every element which of a vector goes with it."""
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
    pieces = Column("piece", "run", "broadcast"), math.prod(shape) / max(1, span)
    if all(math.prod(s) == 1 for s in operands):
        return (pieces,)
    return (pieces, (Column("element-wise", "element", "broadcast"), float(math.prod(shape))))


def function(node: Node, op: str, measures: Measures) -> Amounts:
    if op == "Pow" and math.prod(measures.shape(operand(node, 1))) == 1:
        op = "Pow of one exponent"
    elements = float(measures.elements(node.outputs[0]))
    touched = (Column("element-wise", "byte", "function"), moved(node, measures))
    return ((Column("function", "element", typed(node, op)), elements), touched)


def movement(node: Node, op: str, measures: Measures) -> Amounts:
    """What leaves is read and written once; the rest of a Slice, Gather or Split is never touched. Each stretch of
    memory that is copied in one go has a price of its own, which is each operator's."""
    written = sum(map(measures.bytes, node.outputs))
    elements = sum(map(measures.elements, node.outputs))
    turned = turning(node, measures) if op == "Transpose" else ()
    kept = _kept_together(node, op, measures)
    if kept <= 1:
        return ((Column("movement", "element", typed(node, op)), float(elements)), *turned)
    bytes_ = Column("movement", "byte", typed(node, op)), 2.0 * written
    words = ((Column("piece", "run", f"words of {op}"), _narrow_words(node, op, measures)),)
    return (bytes_, (Column("piece", "run", op), elements / kept), *(words if op in _BY_WORDS else ()), *turned)


def _narrow_words(node: Node, op: str, measures: Measures) -> float:
    """How many words a GPU moves one by one: words are as wide as all parts are multiples of. None where they are as
    wide as can be."""
    axis = int(node.attribute("axis", 0))
    parts = [v for v in (node.inputs if op == "Concat" else node.outputs) if v is not None]
    stretches = [measures.bytes(v) / max(1, math.prod(measures.shape(v)[:axis])) for v in parts]
    width = math.gcd(_WIDEST_WORD, *map(int, stretches))
    return sum(map(measures.bytes, parts)) / width if 0 < width < _WIDEST_WORD else 0.0


def _kept_together(node: Node, op: str, measures: Measures) -> int:
    """How many neighbouring elements stay neighbours."""
    shape = measures.shape(node.outputs[0])
    first = measures.shape(operand(node, 0))
    if op == "Transpose":
        order = order_of(node, len(shape))
        swapped = [i for i, axis in enumerate(order) if i != axis]
        return math.prod(shape[max(swapped) + 1 :] if swapped else shape)
    if op in ("Concat", "Split"):
        axis = int(node.attribute("axis", 0))
        parts = node.inputs if op == "Concat" else node.outputs
        return min((math.prod(measures.shape(part)[axis:]) for part in parts), default=1)
    if op == "Gather" and first:
        return max(2, math.prod(first[int(node.attribute("axis", 0)) % len(first) + 1 :]))
    if len(first) != len(shape):
        return max(2, math.prod(shape[-1:]))
    changed = [i for i, (a, b) in enumerate(zip(first, shape, strict=True)) if a != b]
    if not changed:
        return math.prod(shape)
    return math.prod(shape[max(changed) + 1 :]) if max(changed) + 1 < len(shape) else shape[-1]


def reduction(node: Node, op: str, measures: Measures) -> Amounts:
    """Neighbours are quickly combined; what lies far apart is not."""
    first = operand(node, 0)
    shape = measures.shape(first)
    axes = _axes(node, op)
    along = not shape or axes is None or len(shape) - 1 in {axis % len(shape) for axis in axes}
    read = max(math.prod(shape), measures.elements(node.outputs[0]))
    worked = Column("reduction", "element", typed(node, op if along else f"{op} across")), float(read)
    if op not in _BY_ROW:
        return (worked,)
    return (worked, (Column("reduction", "run", "row"), float(math.prod(shape[:-1]))))


def _axes(node: Node, op: str) -> tuple[int, ...] | None:
    """Axes that are combined; None where that is all of them, or where the last is always among them."""
    if op in ("Softmax", "LogSoftmax", "ArgMax", "ArgMin", "LpNormalization", "TopK"):
        return (int(node.attribute("axis", -1)),)
    axes = node.attribute("axes")
    given = node.inputs[1] if op.startswith("Reduce") and len(node.inputs) > 1 else None
    if axes is None and given is not None and given.constant is not None and given.constant.readable:
        axes = tuple(int(axis) for axis in given.constant.numpy().reshape(-1))
    return axes or None


def pool(node: Node, op: str, measures: Measures) -> Amounts:
    window = math.prod(node.attribute("kernel_shape", (1,)))
    return ((Column("pool", "element", typed(node, op)), float(measures.elements(node.outputs[0]) * window)),)
