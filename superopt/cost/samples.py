"""The workloads of a calibration: operators of every kind, at sizes that tell launches from bytes from operations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from superopt.cost.workloads import data, node, number, weights, whole, workload, yardstick_workload
from superopt.ir.graph import Attribute, Graph, Value
from superopt.ir.types import DType

_RUNTIME = "com.microsoft"
_LARGE, _SMALL = (1, 64, 56, 56), (16, 256)
_ROWS = ((128, 256), (256, 768))
CHAIN = 24

_FUNCTIONS = (
    "Sigmoid",
    "Exp",
    "Tanh",
    "Erf",
    "Sqrt",
    "Reciprocal",
    "Log",
    "Softplus",
    "HardSwish",
    "Elu",
    "Sin",
    "Cos",
)
_SIMPLE = ("Relu", "Neg", "HardSigmoid", "LeakyRelu", "Floor", "Abs")
_BINARY = ("Add", "Mul", "Sub", "Div", "Max", "Pow")
# rows, inner, columns
_PRODUCTS = (
    (128, 256, 256), (1, 1024, 1024), (16, 256, 256), (128, 64, 64), (1, 256, 64), (64, 768, 768), (512, 32, 128),
)  # fmt: skip
_LARGE_PRODUCTS = ((128, 768, 3072), (1024, 1024, 1024), (2048, 768, 3072))
_LARGE_CONVOLUTIONS = ((256, 256, 1, 3, 28), (256, 1024, 1, 1, 28))
# images, channels, height, width: what is between the layers of a network on a batch, and too large to cost nothing
_BATCH = (16, 256, 56, 56)
# batch, positions, width
_SEQUENCES = ((1, 128, 768), (16, 128, 768))
_BATCHED = ((12, 128, 64, 128), (8, 64, 64, 16), (4, 256, 32, 256))
# channels, filters, groups, kernel, height and width
_CONVOLUTIONS = (
    (64, 64, 1, 3, 28), (16, 32, 1, 3, 56), (128, 128, 1, 3, 14), (3, 32, 1, 3, 112), (128, 128, 1, 3, 7),
    (64, 128, 1, 1, 28), (256, 64, 1, 1, 14), (24, 72, 1, 1, 56), (512, 128, 1, 1, 7),
    (64, 16, 1, 1, 1), (512, 512, 1, 1, 1),
    (64, 64, 64, 3, 28), (64, 64, 64, 1, 28), (96, 96, 96, 5, 14), (32, 32, 32, 3, 112), (256, 256, 256, 3, 7),
    (128, 128, 32, 3, 28), (64, 64, 4, 3, 28), (64, 4, 1, 3, 28), (64, 4, 1, 1, 28),
)  # fmt: skip
# axes that are swapped: heads out of rows, channels last, a plain matrix
_TRANSPOSES = (
    ((1, 128, 12, 64), (0, 2, 1, 3)),
    (_LARGE, (0, 2, 3, 1)),
    ((512, 384), (1, 0)),
    ((1, 8, 16, 8), (0, 2, 1, 3)),
)


def samples(target: str = "cpu") -> Iterator[Graph]:
    """The first is what the others are timed against."""
    yield yardstick_workload()
    if target == "cuda":
        for dtype in (DType.FLOAT32, DType.FLOAT16):
            yield from _for_large_devices(dtype)
    yield launches()
    yield from _products()
    yield from (_convolution(*sizes) for sizes in _CONVOLUTIONS)
    yield _convolution(64, 64, 64, 3, 28, stride=2)
    yield _convolution(64, 64, 1, 3, 2, images=16)
    yield from _absorptions()
    for op in _BINARY:
        yield from (_one(op, (data(0, shape), data(1, shape)), shape) for shape in (_LARGE, _SMALL))
    for op in (*_SIMPLE, *_FUNCTIONS):
        yield _one(op, (data(0, _LARGE),), _LARGE)
    thin = (*_LARGE, 1)
    yield _one("Add", (data(0, thin), data(1, (1,))), thin)
    yield _one("Mul", (data(0, _LARGE), data(1, (_LARGE[1], 1, 1))), _LARGE)
    yield _one("Add", (data(0, _ROWS[0]), data(1, _ROWS[0][1:])), _ROWS[0])
    yield _one("Pow", (data(0, _LARGE), number(2.0)), _LARGE)
    yield from _movements()
    yield from _reductions()
    yield from _of_the_runtime()
    yield _recurrence()


def _for_large_devices(dtype: DType) -> Iterator[Graph]:
    """What a GPU is bought for, in the types that have kernels of their own."""
    for rows, inner, columns in _LARGE_PRODUCTS:
        operands = data(0, (rows, inner), dtype), weights(inner, columns, dtype=dtype)
        yield _one("MatMul", operands, (rows, columns))
    yield from _with_biases(*_LARGE_PRODUCTS[-1], dtype)
    for batch, rows, inner, columns in _BATCHED[:1]:
        operands = data(0, (1, batch, rows, inner), dtype), data(1, (1, batch, inner, columns), dtype)
        yield _one("MatMul", operands, (1, batch, rows, columns))
    yield from (_convolution(*sizes, dtype=dtype) for sizes in _LARGE_CONVOLUTIONS)
    yield from _of_batches(dtype)
    yield from _of_windows(dtype)
    yield from _means(dtype)
    for batch, rows, width in _SEQUENCES:
        shape, heads = (batch, rows, width), width // 64
        x, y, z = (data(k, shape, dtype) for k in range(3))
        yield _one("MultiHeadAttention", (x, y, z), shape, domain=_RUNTIME, attributes={"num_heads": heads})
        packed = x, weights(width, 3 * width, dtype=dtype), weights(3 * width, dtype=dtype)
        yield _one("Attention", packed, shape, domain=_RUNTIME, attributes={"num_heads": heads})
        row = weights(width, dtype=dtype)
        yield _one("LayerNormalization", (x, row, row), shape, attributes={"axis": -1})
        yield _one("SkipLayerNormalization", (x, y, row, row, row), shape, domain=_RUNTIME)
        yield _one("BiasGelu", (x, row), shape, domain=_RUNTIME)
        yield _one("BiasAdd", (x, row, y), shape, domain=_RUNTIME)
    narrow = (16, 3136, 96)
    operands = data(0, narrow, dtype), weights(96, dtype=dtype), data(1, narrow, dtype)
    yield _one("BiasAdd", operands, narrow, domain=_RUNTIME)


def _with_biases(rows: int, inner: int, columns: int, dtype: DType) -> Iterator[Graph]:
    """What goes with a product: its bias, taken in or added behind it, and columns that do not come in eights."""
    x, w, row = data(0, (rows, inner), dtype), weights(inner, columns, dtype=dtype), weights(columns, dtype=dtype)
    yield _one("Gemm", (x, w, row), (rows, columns))
    product = node("MatMul", [x, w], (rows, columns))
    for op in ("Add", "Sum"):
        yield workload([x], product, node(op, [product.outputs[0], row], (rows, columns)))
    yield _one("MatMul", (x, weights(inner, columns + 1, dtype=dtype)), (rows, columns + 1))
    long = data(0, (8 * rows, inner), dtype)
    yield from (_one(op, (long, weights(inner, dtype=dtype)), (8 * rows, inner)) for op in ("Add", "Mul"))


def _means(dtype: DType) -> Iterator[Graph]:
    """Over small images, for which a GPU has few threads in its own kernels; as a product they have many."""
    for channels, side in ((480, 14), (1152, 7)):
        x, mean = data(0, (1, channels, side, side), dtype), (1, channels, 1, 1)
        yield _one("GlobalAveragePool", (x,), mean)
        yield _one("ReduceMean", (x,), mean, attributes={"axes": (2, 3)})
        rows = data(0, (1, channels, side * side), dtype)
        yield _one("MatMul", (rows, weights(side * side, 1, dtype=dtype)), (1, channels, 1))


def _of_batches(dtype: DType) -> Iterator[Graph]:
    """Where bytes decide, and not launches."""
    n, c, h, w = _BATCH
    x, y = data(0, _BATCH, dtype), data(1, _BATCH, dtype)
    half, window = (n, c // 2, h, w), {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
    yield from (_one(op, (x, y), _BATCH) for op in ("Add", "Mul"))
    yield from (_one(op, (x, number(0.5, dtype)), _BATCH) for op in ("Add", "Mul", "Div", "Max"))
    yield from (_one(op, (x, weights(c, 1, 1, dtype=dtype)), _BATCH) for op in ("Add", "Mul"))
    yield from (_one(op, (x,), _BATCH) for op in ("Relu", "HardSigmoid", "HardSwish", "Sigmoid", "Erf"))
    yield _one("Clip", (x, number(0.0, dtype), number(6.0, dtype)), _BATCH)
    yield _one("Transpose", (x,), (n, h, w, c), attributes={"perm": (0, 2, 3, 1)})
    yield _one("Concat", (data(0, half, dtype), data(1, half, dtype)), _BATCH, attributes={"axis": 1})
    yield _one("Split", (x, whole(c // 2, c // 2)), half, half, attributes={"axis": 1})
    yield _one("Pad", (x, whole(0, 0, 1, 1, 0, 0, 1, 1)), (n, c, h + 2, w + 2))
    yield from (_one(op, (x,), _BATCH, attributes=window) for op in ("MaxPool", "AveragePool"))
    yield _convolution(64, 256, 1, 1, 56, images=n, dtype=dtype)
    yield _convolution(128, 128, 1, 3, 28, images=n, dtype=dtype)
    yield _convolution(128, 128, 128, 3, 56, images=n, dtype=dtype)
    yield _convolution(3, 64, 1, 7, 112, stride=2, images=n, dtype=dtype)


def _of_windows(dtype: DType) -> Iterator[Graph]:
    """Images with channels last, moved about in rows of channels and cut into windows, and attention within those."""
    n, side, across, width, heads = 16, 8, 7, 96, 3
    pixels = (n, side * across, side * across, width)
    x, whole_image = data(0, pixels, dtype), pixels[1] * pixels[2]
    cut = n, side, across, side, across, width
    for perm in ((0, 1, 3, 2, 4, 5), (2, 4, 0, 1, 3, 5)):
        yield _one("Transpose", (data(0, cut, dtype),), tuple(cut[k] for k in perm), attributes={"perm": perm})
    flat = (n, whole_image, width)
    order = [(at * across) % whole_image for at in range(whole_image)]
    yield _one("Gather", (data(0, flat, dtype), whole(*order)), flat, attributes={"axis": 1})
    for axis in (1, 2):
        part = tuple(size - 3 * (k == axis) for k, size in enumerate(pixels))
        rest = tuple(3 if k == axis else size for k, size in enumerate(pixels))
        yield _one("Slice", (x, whole(3), whole(pixels[axis]), whole(axis)), part)
        yield _one("Concat", (data(0, part, dtype), data(1, rest, dtype)), pixels, attributes={"axis": axis})
    row, longer = weights(width, dtype=dtype), 4 * width
    yield _one("MatMul", (data(0, flat, dtype), weights(width, width, dtype=dtype)), flat)
    yield _one("MatMul", (data(0, flat, dtype), weights(width, longer, dtype=dtype)), (*flat[:2], longer))
    yield _one("Sum", (data(0, flat, dtype), row), flat)
    wide = (*flat[:2], longer)
    yield _one("BiasGelu", (data(0, wide, dtype), weights(longer, dtype=dtype)), wide, domain=_RUNTIME)
    yield _one("LayerNormalization", (data(0, flat, dtype), row, row), flat, attributes={"axis": -1})
    skip = data(0, flat, dtype), data(1, flat, dtype), row, row
    yield _one("SkipLayerNormalization", skip, flat, domain=_RUNTIME)
    windows, length = n * side * side, across * across
    apart, turned = (windows, length, heads, width // heads), (windows, heads, length, width // heads)
    yield _one("Transpose", (data(0, apart, dtype),), turned, attributes={"perm": (0, 2, 1, 3)})
    third = (windows, length, width)
    three = weights(1, width, 3 * width, dtype=dtype)
    turned_rows: dict[str, Attribute] = {"transBatchA": 1}
    stacked = (length, windows, 3 * width)
    operands = data(0, third, dtype), three
    yield _one("FusedMatMul", operands, stacked, domain=_RUNTIME, attributes=turned_rows)
    for rows, part in ((windows, width), (windows // 16, 4 * width)):
        parts = (rows, length, part)
        three = data(0, (rows, length, 3 * part), dtype)
        yield _one("Split", (three, whole(part, part, part)), parts, parts, parts, attributes={"axis": 2})
    scores = (windows, heads, length, length)
    yield _one("Softmax", (data(0, scores, dtype),), scores, attributes={"axis": -1})
    yield _one("Add", (data(0, scores, dtype), weights(1, *scores[1:], dtype=dtype)), scores)
    given = data(0, scores, dtype)
    biased = node("Add", [given, weights(1, *scores[1:], dtype=dtype)], scores)
    yield workload([given], biased, node("Softmax", [biased.outputs[0]], scores, attributes={"axis": -1}))
    yield _one("MatMul", (data(0, scores, dtype), data(1, turned, dtype)), turned)
    first = (length, windows, heads, width // heads)
    turning: dict[str, Attribute] = {"transBatchA": 1, "transBatchB": 1, "transB": 1}
    operands = data(0, first, dtype), data(1, first, dtype)
    yield _one("FusedMatMul", operands, scores, domain=_RUNTIME, attributes=turning)
    of_scores, of_values = "nqhd,nkhd->nhqk", "nhqk,nkhd->nqhd"
    operands = data(0, apart, dtype), data(1, apart, dtype)
    yield _one("Einsum", operands, scores, attributes={"equation": of_scores})
    operands = data(0, scores, dtype), data(1, apart, dtype)
    yield _one("Einsum", operands, apart, attributes={"equation": of_values})
    q, k, v = (data(number, third, dtype) for number in range(3))
    inputs = [q, k, v, None, None, weights(1, *scores[1:], dtype=dtype)]
    yield workload(
        [q, k, v], node("MultiHeadAttention", inputs, third, domain=_RUNTIME, attributes={"num_heads": heads})
    )


def _one(
    op: str,
    inputs: tuple[Value, ...],
    *shapes: tuple[int, ...],
    domain: str = "",
    attributes: Mapping[str, Attribute] | None = None,
) -> Graph:
    return workload(inputs, node(op, inputs, *shapes, domain=domain, attributes=attributes))


def launches() -> Graph:
    """Many nodes that do next to nothing."""
    x, y = data(0, (4,)), data(1, (4,))
    nodes = [node("Sub", [x, y], (4,))]
    while len(nodes) < CHAIN:
        nodes.append(node("Sub", [nodes[-1].outputs[0], y], (4,)))
    return workload([x, y], *nodes)


def _products() -> Iterator[Graph]:
    for rows, inner, columns in _PRODUCTS:
        yield _one("MatMul", (data(0, (rows, inner)), weights(inner, columns)), (rows, columns))
    for batch, rows, inner, columns in _BATCHED:
        operands = data(0, (1, batch, rows, inner)), data(1, (1, batch, inner, columns))
        yield _one("MatMul", operands, (1, batch, rows, columns))
    yield from (_side_by_side(rows, 512, 512) for rows in (1, 16))
    yield _one("MatMul", (data(0, (1, 512)), weights(512, 2048)), (1, 2048))


def _side_by_side(rows: int, inner: int, columns: int) -> Graph:
    """Four products of one input, which merging would make one: what each of them costs to begin."""
    x, shape = data(0, (rows, inner)), (rows, columns)
    products = [node("MatMul", [x, weights(inner, columns, seed=k)], shape) for k in range(4)]
    sums = [node("Add", [products[0].outputs[0], products[1].outputs[0]], shape)]
    for product in products[2:]:
        sums.append(node("Add", [sums[-1].outputs[0], product.outputs[0]], shape))
    return workload([x], *products, *sums)


def _convolution(
    channels: int,
    filters: int,
    groups: int,
    kernel: int,
    size: int,
    *,
    stride: int = 1,
    images: int = 1,
    dtype: DType = DType.FLOAT32,
) -> Graph:
    x = data(0, (images, channels, size, size), dtype)
    operands = x, weights(filters, channels // groups, kernel, kernel, dtype=dtype), weights(filters, dtype=dtype)
    attributes: dict[str, Attribute] = {
        "group": groups, "pads": (kernel // 2,) * 4, "kernel_shape": (kernel,) * 2, "strides": (stride,) * 2,
    }  # fmt: skip
    return _one("Conv", operands, (images, filters, size // stride, size // stride), attributes=attributes)


def _absorptions() -> Iterator[Graph]:
    """What a convolution takes along where the runtime lets it: an activation, a tensor that is added before it."""
    shape = (1, 64, 28, 28)
    x, skip = data(0, shape), data(1, shape)
    convolved = node("Conv", [x, weights(64, 64, 1, 1), weights(64)], shape)
    yield workload([x], convolved, node("Relu", convolved.outputs, shape))
    added = node("Add", [convolved.outputs[0], skip], shape)
    yield workload([x, skip], convolved, added, node("Relu", added.outputs, shape))


def _movements() -> Iterator[Graph]:
    for shape, perm in _TRANSPOSES:
        moved = tuple(shape[axis] for axis in perm)
        yield _one("Transpose", (data(0, shape),), moved, attributes={"perm": perm})
    n, c, h, w = _LARGE
    x = data(0, _LARGE)
    half, double = (n, c // 2, h, w), (n, 2 * c, h, w)
    yield _one("Concat", (x, data(1, _LARGE)), double, attributes={"axis": 1})
    yield _one("Concat", (x, data(1, _LARGE)), (n, c, h, 2 * w), attributes={"axis": 3})
    yield _one("Split", (x, whole(c // 2, c // 2)), half, half, attributes={"axis": 1})
    yield _one("Split", (x, whole(w // 2, w // 2)), *[(n, c, h, w // 2)] * 2, attributes={"axis": 3})
    yield _one("Slice", (x, whole(1), whole(h), whole(2)), (n, c, h - 1, w))
    yield _one("Pad", (x, whole(0, 0, 1, 1, 0, 0, 1, 1)), (n, c, h + 2, w + 2))
    thin = (n, c, h * w, 1)
    yield _one("Slice", (data(0, thin), whole(1), whole(h * w), whole(2)), (n, c, h * w - 1, 1))
    yield _one("Pad", (data(0, thin), whole(0, 0, 1, 0, 0, 0, 1, 0)), (n, c, h * w + 2, 1))
    yield _one("Expand", (data(0, (n, c, 1, 1)), whole(*_LARGE)), _LARGE)
    yield _one("Gather", (data(0, (1024, 256)), whole(*range(0, 256, 2))), (128, 256))
    reshaped = node("Reshape", [x, whole(n, c, h * w)], (n, c, h * w))
    yield workload([x], reshaped, node("Relu", reshaped.outputs, (n, c, h * w)))


def _reductions() -> Iterator[Graph]:
    for shape in _ROWS:
        x = data(0, shape)
        yield _one("ReduceSum", (x, whole(-1)), (shape[0], 1))
        yield from (_one(op, (x,), (shape[0], 1), attributes={"axes": (-1,)}) for op in ("ReduceMean", "ReduceMax"))
        yield _one("Softmax", (x,), shape, attributes={"axis": -1})
        yield _one("LayerNormalization", (x, weights(shape[1]), weights(shape[1])), shape, attributes={"axis": -1})
        yield _one("SimplifiedLayerNormalization", (x, weights(shape[1])), shape, attributes={"axis": -1})
    n, c, h, w = _LARGE
    x = data(0, _LARGE)
    yield _one("Softmax", (x,), _LARGE, attributes={"axis": 1})
    yield _one("ReduceMean", (x,), (n, 1, h, w), attributes={"axes": (1,)})
    yield _one("GlobalAveragePool", (x,), (n, c, 1, 1))
    yield _one("InstanceNormalization", (x, weights(c), weights(c)), _LARGE)
    for op in ("MaxPool", "AveragePool"):
        window: dict[str, Attribute] = {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
        yield _one(op, (x,), (n, c, h // 2, w // 2), attributes=window)


def _of_the_runtime() -> Iterator[Graph]:
    for op in ("Gelu", "QuickGelu", "FastGelu"):
        yield _one(op, (data(0, _ROWS[1]),), _ROWS[1], domain=_RUNTIME)
    rows, width = _ROWS[0]
    x, skip = data(0, (1, rows, width)), data(1, (1, rows, width))
    yield _one("BiasGelu", (x, weights(width)), (1, rows, width), domain=_RUNTIME)
    for op in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
        yield _one(op, (x, skip, weights(width)), (1, rows, width), domain=_RUNTIME)
    operands = x, skip, data(2, (1, rows, width))
    yield _one("MultiHeadAttention", operands, (1, rows, width), domain=_RUNTIME, attributes={"num_heads": 4})


def _recurrence() -> Graph:
    steps, batch, width, hidden = 16, 1, 64, 64
    x = data(0, (steps, batch, width))
    operands = x, weights(1, 4 * hidden, width), weights(1, 4 * hidden, hidden)
    return _one("LSTM", operands, (steps, 1, batch, hidden), attributes={"hidden_size": hidden})
