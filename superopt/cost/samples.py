"""The workloads of a calibration: operators of every kind, at sizes that tell launches from bytes from operations."""

from __future__ import annotations

from collections.abc import Iterator

from superopt.cost.sample_parts import RUNTIME, convolution, one
from superopt.cost.samples_of_gpus import samples_of_gpus
from superopt.cost.workloads import data, node, number, weights, whole, workload, yardstick_workload
from superopt.ir.graph import Attribute, Graph
from superopt.ir.types import DType

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
            yield from samples_of_gpus(dtype)
    yield launches()
    yield from _products()
    yield from (convolution(*sizes) for sizes in _CONVOLUTIONS)
    yield convolution(64, 64, 64, 3, 28, stride=2)
    yield convolution(64, 64, 1, 3, 2, images=16)
    yield from _absorptions()
    for op in _BINARY:
        yield from (one(op, (data(0, shape), data(1, shape)), shape) for shape in (_LARGE, _SMALL))
    for op in (*_SIMPLE, *_FUNCTIONS):
        yield one(op, (data(0, _LARGE),), _LARGE)
    thin = (*_LARGE, 1)
    yield one("Add", (data(0, thin), data(1, (1,))), thin)
    yield one("Mul", (data(0, _LARGE), data(1, (_LARGE[1], 1, 1))), _LARGE)
    yield one("Add", (data(0, _ROWS[0]), data(1, _ROWS[0][1:])), _ROWS[0])
    yield one("Pow", (data(0, _LARGE), number(2.0)), _LARGE)
    yield from _movements()
    yield from _reductions()
    yield from _of_the_runtime()
    yield _recurrence()


def launches() -> Graph:
    """Many nodes that do next to nothing."""
    x, y = data(0, (4,)), data(1, (4,))
    nodes = [node("Sub", [x, y], (4,))]
    while len(nodes) < CHAIN:
        nodes.append(node("Sub", [nodes[-1].outputs[0], y], (4,)))
    return workload([x, y], *nodes)


def _products() -> Iterator[Graph]:
    for rows, inner, columns in _PRODUCTS:
        yield one("MatMul", (data(0, (rows, inner)), weights(inner, columns)), (rows, columns))
    for batch, rows, inner, columns in _BATCHED:
        operands = data(0, (1, batch, rows, inner)), data(1, (1, batch, inner, columns))
        yield one("MatMul", operands, (1, batch, rows, columns))
    yield from (_side_by_side(rows, 512, 512) for rows in (1, 16))
    yield one("MatMul", (data(0, (1, 512)), weights(512, 2048)), (1, 2048))


def _side_by_side(rows: int, inner: int, columns: int) -> Graph:
    """Four products of one input, which merging would make one: what each of them costs to begin."""
    x, shape = data(0, (rows, inner)), (rows, columns)
    products = [node("MatMul", [x, weights(inner, columns, seed=k)], shape) for k in range(4)]
    sums = [node("Add", [products[0].outputs[0], products[1].outputs[0]], shape)]
    for product in products[2:]:
        sums.append(node("Add", [sums[-1].outputs[0], product.outputs[0]], shape))
    return workload([x], *products, *sums)


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
        yield one("Transpose", (data(0, shape),), moved, attributes={"perm": perm})
    n, c, h, w = _LARGE
    x = data(0, _LARGE)
    half, double = (n, c // 2, h, w), (n, 2 * c, h, w)
    yield one("Concat", (x, data(1, _LARGE)), double, attributes={"axis": 1})
    yield one("Concat", (x, data(1, _LARGE)), (n, c, h, 2 * w), attributes={"axis": 3})
    yield one("Split", (x, whole(c // 2, c // 2)), half, half, attributes={"axis": 1})
    yield one("Split", (x, whole(w // 2, w // 2)), *[(n, c, h, w // 2)] * 2, attributes={"axis": 3})
    yield one("Slice", (x, whole(1), whole(h), whole(2)), (n, c, h - 1, w))
    yield one("Pad", (x, whole(0, 0, 1, 1, 0, 0, 1, 1)), (n, c, h + 2, w + 2))
    thin = (n, c, h * w, 1)
    yield one("Slice", (data(0, thin), whole(1), whole(h * w), whole(2)), (n, c, h * w - 1, 1))
    yield one("Pad", (data(0, thin), whole(0, 0, 1, 0, 0, 0, 1, 0)), (n, c, h * w + 2, 1))
    yield one("Expand", (data(0, (n, c, 1, 1)), whole(*_LARGE)), _LARGE)
    yield one("Gather", (data(0, (1024, 256)), whole(*range(0, 256, 2))), (128, 256))
    reshaped = node("Reshape", [x, whole(n, c, h * w)], (n, c, h * w))
    yield workload([x], reshaped, node("Relu", reshaped.outputs, (n, c, h * w)))


def _reductions() -> Iterator[Graph]:
    for shape in _ROWS:
        x = data(0, shape)
        yield one("ReduceSum", (x, whole(-1)), (shape[0], 1))
        yield from (one(op, (x,), (shape[0], 1), attributes={"axes": (-1,)}) for op in ("ReduceMean", "ReduceMax"))
        yield one("Softmax", (x,), shape, attributes={"axis": -1})
        yield one("LayerNormalization", (x, weights(shape[1]), weights(shape[1])), shape, attributes={"axis": -1})
        yield one("SimplifiedLayerNormalization", (x, weights(shape[1])), shape, attributes={"axis": -1})
    n, c, h, w = _LARGE
    x = data(0, _LARGE)
    yield one("Softmax", (x,), _LARGE, attributes={"axis": 1})
    yield one("ReduceMean", (x,), (n, 1, h, w), attributes={"axes": (1,)})
    yield one("GlobalAveragePool", (x,), (n, c, 1, 1))
    yield one("InstanceNormalization", (x, weights(c), weights(c)), _LARGE)
    for op in ("MaxPool", "AveragePool"):
        window: dict[str, Attribute] = {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
        yield one(op, (x,), (n, c, h // 2, w // 2), attributes=window)


def _of_the_runtime() -> Iterator[Graph]:
    for op in ("Gelu", "QuickGelu", "FastGelu"):
        yield one(op, (data(0, _ROWS[1]),), _ROWS[1], domain=RUNTIME)
    rows, width = _ROWS[0]
    x, skip = data(0, (1, rows, width)), data(1, (1, rows, width))
    yield one("BiasGelu", (x, weights(width)), (1, rows, width), domain=RUNTIME)
    for op in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
        yield one(op, (x, skip, weights(width)), (1, rows, width), domain=RUNTIME)
    operands = x, skip, data(2, (1, rows, width))
    yield one("MultiHeadAttention", operands, (1, rows, width), domain=RUNTIME, attributes={"num_heads": 4})


def _recurrence() -> Graph:
    steps, batch, width, hidden = 16, 1, 64, 64
    x = data(0, (steps, batch, width))
    operands = x, weights(1, 4 * hidden, width), weights(1, 4 * hidden, hidden)
    return one("LSTM", operands, (steps, 1, batch, hidden), attributes={"hidden_size": hidden})
