"""Work that the clock counts by multiplications: convolutions, matrix products and what is built of them."""

from __future__ import annotations

import math
from typing import Literal

from superopt.cost.columns import Amounts, Column
from superopt.cost.measures import Measures, moved, operand, typed
from superopt.cost.weights import is_weight
from superopt.ir.graph import Node
from superopt.ir.types import DType

SHARED = 1 << 17
"""Operations from which on a product is shared among threads, which costs something each time."""
THIN = 8
"""Channels below which a convolution has none of the kernels that are fast: tensor cores take eight at once."""
ALIGNED = 8
"""Columns that kernels for 16 bits read at once: a product whose number of columns it does not divide gets none of
the fast ones; nor does a convolution whose number of channels it does not divide."""
_RAGGED_HALVES = ("ragged float16", "ragged bfloat16")
_RAGGED = ("ragged", *_RAGGED_HALVES)
_LONG = 256
"""Positions from which on attention in 32 bits has a kernel that never writes scores down."""
_BIASED = ("Conv", "FusedConv")  # whose third operand is a bias
_FILTERS = {"QLinearConv": 3, "QLinearMatMul": 3}  # where weights stand among the operands, when not second


def convolution(node: Node, op: str, measures: Measures) -> Amounts:
    """One matrix product for each image and group, over the input laid out for it once for all filters of the group."""
    if op == "ConvTranspose":
        return _transposed_convolution(node, op, measures)
    result, weights = measures.shape(node.outputs[0]), operand(node, _FILTERS.get(op, 1))
    filters = measures.shape(weights)
    group, images, window = int(node.attribute("group", 1)), max(1, math.prod(result[:1])), math.prod(filters[2:])
    operations = 2.0 * math.prod(result) * math.prod(filters[1:])
    fixed = measures.bytes(weights) if weights is not None else 0.0
    common = (
        (Column("convolution", "byte", "data"), moved(node, measures) - fixed),
        (Column("convolution", "byte", "weights"), fixed * images),
        (Column("convolution", "run", "group"), float(group * images) if group > 1 else 0.0),
        *(bias(node, measures, "convolution") if group > 1 and op in _BIASED and operand(node, 2) is not None else ()),
    )
    if group > 1 and filters[1:2] == (1,):
        style = _depthwise_style(node, window)
        return ((Column("convolution", "operation", typed(node, style)), operations), *common)
    style = "pointwise" if window == 1 else "dense"
    laid_out = operations / (2.0 * max(1, filters[0] // group)) if filters else 0.0
    thin = bool(filters) and filters[1] < THIN
    return (
        (Column("convolution", "operation", typed(node, style)), operations),
        *(((Column("convolution", "operation", typed(node, "thin")), operations),) if thin else ()),
        *(_odd_channels(node, filters, operations) if not thin else ()),
        (Column("convolution", "element", style), laid_out),
        *common,
    )


def _odd_channels(node: Node, filters: tuple[int, ...], operations: float) -> Amounts:
    """What it takes besides in 16 bits where channels do not come in eights."""
    name = typed(node, "ragged")
    is_ragged = len(filters) > 1 and filters[1] % ALIGNED != 0 and name in _RAGGED_HALVES
    return ((Column("convolution", "operation", name), operations),) if is_ragged else ()


def _depthwise_style(node: Node, window: int) -> str:
    """Windows of 1 and of 3 × 3 that touch every place have kernels of their own."""
    dense = all(step == 1 for name in ("strides", "dilations") for step in node.attribute(name, ()))
    return f"depthwise {window}" if window == 1 or (window == 9 and dense) else "depthwise"


def _transposed_convolution(node: Node, op: str, measures: Measures) -> Amounts:
    first, filters = operand(node, 0), measures.shape(operand(node, 1))
    operations = 2.0 * measures.elements(first) * math.prod(filters[1:])
    return (
        (Column("convolution", "operation", "transposed"), operations),
        (Column("convolution", "byte", "transposed"), moved(node, measures)),
    )


def product(node: Node, op: str, measures: Measures) -> Amounts:
    """Both matrices may have leading axes; the inner size is the first one's last, or its first when transposed."""
    left = measures.shape(operand(node, 0))
    second = _FILTERS.get(op, 1)
    transposed = bool(node.attribute("transA", 0))
    inner = left[-2 if transposed and len(left) > 1 else -1] if left else 1
    right = operand(node, second)
    style = "weights" if right is not None and is_weight(right) else "data"
    operations = 2.0 * measures.elements(node.outputs[0]) * inner
    return (
        (Column("product", "operation", typed(node, style)), operations),
        *ragged(node, operations, measures),
        (Column("product", "byte", style), moved(node, measures)),
        (Column("product", "run"), float(operations >= SHARED)),
        *(((Column("product", "run", "by addresses"), 1.0),) if _by_addresses(node, op, measures) else ()),
        *(((Column("product", "run", "matrix"), _matrices(node, measures)),) if style == "data" else ()),
        *(bias(node, measures) if op == "Gemm" and operand(node, 2) is not None else ()),
    )


def _by_addresses(node: Node, op: str, measures: Measures) -> bool:
    """Where a matrix of one operand goes with several of the other, in no regular steps for all that onnxruntime
    knows: it writes down where each one lies, and sends that to the device in every run. It knows one matrix on the
    right for all rows on the left, which is one large product, and as many matrices on either side."""
    left, right = (measures.shape(operand(node, k)) for k in (0, _FILTERS.get(op, 1)))
    counts = _count(left, node.attribute("transBatchA", 0)), _count(right, node.attribute("transBatchB", 0))
    is_turned = any(node.attribute(name, 0) for name in ("transA", "transBatchA", "transBatchB"))
    if max(counts) == 1 or (counts[1] == 1 and len(left) >= len(right) and not is_turned):
        return False
    return len(left) < 3 or (len(right) > 2 and counts[0] != counts[1])


def _count(shape: tuple[int, ...], batch_is_turned: object) -> int:
    """Matrices of an operand, whose batch may stand between its rows and its columns."""
    return math.prod(shape[1:-1] if batch_is_turned else shape[:-2])


def _matrices(node: Node, measures: Measures) -> float:
    """How many there are: small ones each take a while to begin."""
    return float(math.prod(measures.shape(node.outputs[0])[:-2]))


def ragged(node: Node, operations: float, measures: Measures) -> Amounts:
    """What it takes besides where rows of the result do not begin at places that kernels like."""
    columns, name = measures.shape(node.outputs[0])[-1:], typed(node, "ragged")
    is_ragged = bool(columns) and columns[0] % ALIGNED != 0 and name in _RAGGED
    return ((Column("product", "operation", name), operations),) if is_ragged else ()


def bias(node: Node, measures: Measures, kind: Literal["product", "convolution"] = "product") -> Amounts:
    """What it takes to have a product begin from a bias instead of from nothing, or to add one to what a convolution in
    groups made: neither has a kernel on a GPU that does it in passing."""
    return (
        (Column("launch", "run", "bias"), 1.0),
        (Column(kind, "element", "bias"), measures.elements(node.outputs[0])),
    )


def attention(node: Node, op: str, measures: Measures) -> Amounts:
    """Queries and keys, then probabilities and values; with the projections where the operator holds them."""
    query, result = measures.shape(operand(node, 0)), node.outputs[0]
    projects = bool(node.domain) and op == "Attention"
    second = measures.shape(operand(node, 1)) or query
    keys = query if projects else second
    length = keys[-2] if len(keys) > 1 else 1
    operations = 4.0 * measures.elements(result) * length
    projection = 2.0 * math.prod(query) * second[-1] if projects and second else 0.0
    return (
        (Column("attention", "operation", typed(node, op)), operations),
        (Column("product", "operation", typed(node, "weights")), projection),
        (Column("launch", "run", "product"), float(projects)),
        *_biased_scores(node, query, length),
    )


def _biased_scores(node: Node, query: tuple[int, ...], length: int) -> Amounts:
    """What is added to scores keeps onnxruntime from its fastest kernels."""
    heads = node.attribute("num_heads", 1)
    if node.domain != "com.microsoft" or operand(node, 5) is None or len(query) < 3 or not isinstance(heads, int):
        return ()
    scores = query[0] * query[1] * length * heads
    style = "biased" if _writes_scores(node, query[1]) else "biased on the way"
    return ((Column("attention", "element", style), float(scores)),)


def _writes_scores(node: Node, positions: int) -> bool:
    """Whether something that is added makes onnxruntime write scores down: rows of it have to begin at places that the
    kernel which does not likes."""
    result = node.outputs[0].tensor_type
    if result is not None and result.dtype in (DType.FLOAT16, DType.BFLOAT16):
        return positions % 8 != 0
    return positions % 16 != 0 or positions < _LONG


def recurrent(node: Node, op: str, measures: Measures) -> Amounts:
    first, weights = measures.shape(operand(node, 0)), [v for v in node.inputs[1:3] if v is not None]
    steps = first[0] if first else 1
    batch = first[1] if len(first) > 1 else 1
    operations = 2.0 * steps * batch * sum(map(measures.elements, weights))
    return (
        (Column("recurrent", "operation", op), operations),
        (Column("recurrent", "run", op), float(steps)),
    )
