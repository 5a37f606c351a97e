"""What a GPU is bought for: the workloads of a calibration that are too large for a CPU, in the types that have kernels
of their own."""

from __future__ import annotations

from collections.abc import Iterator

from superopt.cost.sample_parts import RUNTIME, convolution, one
from superopt.cost.workloads import data, node, number, weights, whole, workload
from superopt.ir.graph import Attribute, Graph, Node, Value
from superopt.ir.types import DType

_LARGE_PRODUCTS = ((128, 768, 3072), (1024, 1024, 1024), (2048, 768, 3072))
_LARGE_CONVOLUTIONS = ((256, 256, 1, 3, 28), (256, 1024, 1, 1, 28))
# images, channels, height, width: what is between the layers of a network on a batch, and too large to cost nothing
_BATCH = (16, 256, 56, 56)
# batch, positions, width
_SEQUENCES = ((1, 128, 768), (16, 128, 768))
# heads, rows, inner, columns
_HEADS = 12, 128, 64, 128


def samples_of_gpus(dtype: DType) -> Iterator[Graph]:
    for rows, inner, columns in _LARGE_PRODUCTS:
        operands = data(0, (rows, inner), dtype), weights(inner, columns, dtype=dtype)
        yield one("MatMul", operands, (rows, columns))
    yield from _with_biases(*_LARGE_PRODUCTS[-1], dtype)
    heads, rows, inner, columns = _HEADS
    operands = data(0, (1, heads, rows, inner), dtype), data(1, (1, heads, inner, columns), dtype)
    yield one("MatMul", operands, (1, heads, rows, columns))
    yield from (convolution(*sizes, dtype=dtype) for sizes in _LARGE_CONVOLUTIONS)
    yield from _of_batches(dtype)
    yield from _of_windows(dtype)
    yield from _means(dtype)
    yield from _ragged_columns(dtype)
    for batch, rows, width in _SEQUENCES:
        shape, heads = (batch, rows, width), width // 64
        x, y, z = (data(k, shape, dtype) for k in range(3))
        yield one("MultiHeadAttention", (x, y, z), shape, domain=RUNTIME, attributes={"num_heads": heads})
        packed = x, weights(width, 3 * width, dtype=dtype), weights(3 * width, dtype=dtype)
        yield one("Attention", packed, shape, domain=RUNTIME, attributes={"num_heads": heads})
        row = weights(width, dtype=dtype)
        added = weights(1, heads, rows, rows, dtype=dtype)
        yield workload([x, y, z], _biased_attention(x, y, z, added, heads))
        yield one("LayerNormalization", (x, row, row), shape, attributes={"axis": -1})
        yield one("SkipLayerNormalization", (x, y, row, row, row), shape, domain=RUNTIME)
        yield one("BiasGelu", (x, row), shape, domain=RUNTIME)
        yield one("BiasAdd", (x, row, y), shape, domain=RUNTIME)
    narrow = (16, 3136, 96)
    operands = data(0, narrow, dtype), weights(96, dtype=dtype), data(1, narrow, dtype)
    yield one("BiasAdd", operands, narrow, domain=RUNTIME)


def _with_biases(rows: int, inner: int, columns: int, dtype: DType) -> Iterator[Graph]:
    """What goes with a product: its bias, taken in or added behind it, and columns that do not come in eights."""
    x, w, row = data(0, (rows, inner), dtype), weights(inner, columns, dtype=dtype), weights(columns, dtype=dtype)
    yield one("Gemm", (x, w, row), (rows, columns))
    product = node("MatMul", [x, w], (rows, columns))
    for op in ("Add", "Sum"):
        yield workload([x], product, node(op, [product.outputs[0], row], (rows, columns)))
    yield one("MatMul", (x, weights(inner, columns + 1, dtype=dtype)), (rows, columns + 1))
    long = data(0, (8 * rows, inner), dtype)
    yield from (one(op, (long, weights(inner, dtype=dtype)), (8 * rows, inner)) for op in ("Add", "Mul"))


def _ragged_columns(dtype: DType) -> Iterator[Graph]:
    """Columns cut off or put to others, where rows do not come in wide words."""
    rows, columns, few = 2048, 3073, 7
    whole_rows, parts = (rows, columns + few), ((rows, columns), (rows, few))
    x, kept = data(0, whole_rows, dtype), parts[0]
    yield one("Split", (x, whole(columns, few)), *parts, attributes={"axis": 1})
    yield one("Slice", (x, whole(0), whole(columns), whole(1)), kept)
    yield one("Concat", (data(0, kept, dtype), data(1, parts[1], dtype)), whole_rows, attributes={"axis": 1})


def _means(dtype: DType) -> Iterator[Graph]:
    """Over small images, for which a GPU has few threads in its own kernels; as a product they have many."""
    for channels, side in ((480, 14), (1152, 7)):
        x, mean = data(0, (1, channels, side, side), dtype), (1, channels, 1, 1)
        yield one("GlobalAveragePool", (x,), mean)
        yield one("ReduceMean", (x,), mean, attributes={"axes": (2, 3)})
        rows = data(0, (1, channels, side * side), dtype)
        yield one("MatMul", (rows, weights(side * side, 1, dtype=dtype)), (1, channels, 1))


def _of_batches(dtype: DType) -> Iterator[Graph]:
    """Where bytes decide, and not launches."""
    n, c, h, w = _BATCH
    x, y = data(0, _BATCH, dtype), data(1, _BATCH, dtype)
    half, window = (n, c // 2, h, w), {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
    yield from (one(op, (x, y), _BATCH) for op in ("Add", "Mul"))
    yield from (one(op, (x, number(0.5, dtype)), _BATCH) for op in ("Add", "Mul", "Div", "Max"))
    yield from (one(op, (x, weights(c, 1, 1, dtype=dtype)), _BATCH) for op in ("Add", "Mul"))
    yield from (one(op, (x,), _BATCH) for op in ("Relu", "HardSigmoid", "HardSwish", "Sigmoid", "Erf"))
    yield one("Clip", (x, number(0.0, dtype), number(6.0, dtype)), _BATCH)
    yield one("Transpose", (x,), (n, h, w, c), attributes={"perm": (0, 2, 3, 1)})
    yield one("Concat", (data(0, half, dtype), data(1, half, dtype)), _BATCH, attributes={"axis": 1})
    yield one("Split", (x, whole(c // 2, c // 2)), half, half, attributes={"axis": 1})
    yield one("Pad", (x, whole(0, 0, 1, 1, 0, 0, 1, 1)), (n, c, h + 2, w + 2))
    yield from (one(op, (x,), _BATCH, attributes=window) for op in ("MaxPool", "AveragePool"))
    yield convolution(64, 256, 1, 1, 56, images=n, dtype=dtype)
    yield convolution(128, 128, 1, 3, 28, images=n, dtype=dtype)
    yield convolution(128, 128, 128, 3, 56, images=n, dtype=dtype)
    yield convolution(3, 64, 1, 7, 112, stride=2, images=n, dtype=dtype)
    yield from (convolution(channels, 64, 1, 3, 112, images=n, dtype=dtype) for channels in (12, 16))


def _of_windows(dtype: DType) -> Iterator[Graph]:
    """Images with channels last, moved about in rows of channels and cut into windows, and attention within those."""
    n, side, across, width, heads = 16, 8, 7, 96, 3
    pixels = (n, side * across, side * across, width)
    x, whole_image = data(0, pixels, dtype), pixels[1] * pixels[2]
    cut = n, side, across, side, across, width
    for perm in ((0, 1, 3, 2, 4, 5), (2, 4, 0, 1, 3, 5)):
        yield one("Transpose", (data(0, cut, dtype),), tuple(cut[k] for k in perm), attributes={"perm": perm})
    flat = (n, whole_image, width)
    order = [(at * across) % whole_image for at in range(whole_image)]
    yield one("Gather", (data(0, flat, dtype), whole(*order)), flat, attributes={"axis": 1})
    for axis in (1, 2):
        part = tuple(size - 3 * (k == axis) for k, size in enumerate(pixels))
        rest = tuple(3 if k == axis else size for k, size in enumerate(pixels))
        yield one("Slice", (x, whole(3), whole(pixels[axis]), whole(axis)), part)
        yield one("Concat", (data(0, part, dtype), data(1, rest, dtype)), pixels, attributes={"axis": axis})
    row, longer = weights(width, dtype=dtype), 4 * width
    yield one("MatMul", (data(0, flat, dtype), weights(width, width, dtype=dtype)), flat)
    yield one("MatMul", (data(0, flat, dtype), weights(width, longer, dtype=dtype)), (*flat[:2], longer))
    yield one("Sum", (data(0, flat, dtype), row), flat)
    wide = (*flat[:2], longer)
    yield one("BiasGelu", (data(0, wide, dtype), weights(longer, dtype=dtype)), wide, domain=RUNTIME)
    yield one("LayerNormalization", (data(0, flat, dtype), row, row), flat, attributes={"axis": -1})
    skip = data(0, flat, dtype), data(1, flat, dtype), row, row
    yield one("SkipLayerNormalization", skip, flat, domain=RUNTIME)
    windows, length = n * side * side, across * across
    apart, turned = (windows, length, heads, width // heads), (windows, heads, length, width // heads)
    yield one("Transpose", (data(0, apart, dtype),), turned, attributes={"perm": (0, 2, 1, 3)})
    third = (windows, length, width)
    three = weights(1, width, 3 * width, dtype=dtype)
    turned_rows: dict[str, Attribute] = {"transBatchA": 1}
    stacked = (length, windows, 3 * width)
    operands = data(0, third, dtype), three
    yield one("FusedMatMul", operands, stacked, domain=RUNTIME, attributes=turned_rows)
    for rows, part in ((windows, width), (windows // 16, 4 * width)):
        parts = (rows, length, part)
        three = data(0, (rows, length, 3 * part), dtype)
        yield one("Split", (three, whole(part, part, part)), parts, parts, parts, attributes={"axis": 2})
    scores = (windows, heads, length, length)
    yield one("Softmax", (data(0, scores, dtype),), scores, attributes={"axis": -1})
    yield one("Add", (data(0, scores, dtype), weights(1, *scores[1:], dtype=dtype)), scores)
    given = data(0, scores, dtype)
    biased = node("Add", [given, weights(1, *scores[1:], dtype=dtype)], scores)
    yield workload([given], biased, node("Softmax", [biased.outputs[0]], scores, attributes={"axis": -1}))
    yield one("MatMul", (data(0, scores, dtype), data(1, turned, dtype)), turned)
    first = (length, windows, heads, width // heads)
    turning: dict[str, Attribute] = {"transBatchA": 1, "transBatchB": 1, "transB": 1}
    operands = data(0, first, dtype), data(1, first, dtype)
    yield one("FusedMatMul", operands, scores, domain=RUNTIME, attributes=turning)
    of_scores, of_values = "nqhd,nkhd->nhqk", "nhqk,nkhd->nqhd"
    operands = data(0, apart, dtype), data(1, apart, dtype)
    yield one("Einsum", operands, scores, attributes={"equation": of_scores})
    operands = data(0, scores, dtype), data(1, apart, dtype)
    yield one("Einsum", operands, apart, attributes={"equation": of_values})
    q, k, v = (data(number, third, dtype) for number in range(3))
    yield workload([q, k, v], _biased_attention(q, k, v, weights(1, *scores[1:], dtype=dtype), heads))


def _biased_attention(q: Value, k: Value, v: Value, added: Value, heads: int) -> Node:
    shape = q.tensor_type.static_shape if q.tensor_type is not None else None
    assert shape is not None
    inputs = [q, k, v, None, None, added]
    return node("MultiHeadAttention", inputs, shape, domain=RUNTIME, attributes={"num_heads": heads})
