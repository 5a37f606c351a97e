# pyright: basic
"""Sequence networks of the benchmark: transformers, chains of matrices, an unrolled LSTM; weights made up.

What can be merged by hand is written by a function that is given, so that handmade.py can give another.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx

from benchmarks.building import Net, draw_matrix

LoraLinear = Callable[[Net, str, str, int, int], str]
Attend = Callable[[Net, str, str, str, float], str]
Chain = Callable[[Net, str, str, int, int], str]
Activation = Callable[[Net, str, int], str]

LAYERS = 4
RANK, LORA_SCALE = 8, 2.0


def adapted_linear(net: Net, x: str, name: str, rows: int, columns: int) -> str:
    """x W + b, and beside it the adapter (x A) B, scaled."""
    base = net.linear(x, name, rows, columns)
    down = net.product(x, f"{name}.a", rows, RANK)
    up = net.product(down, f"{name}.b", RANK, columns, gain=0.1)
    return net.node("Add", base, net.node("Mul", up, net.scalar(LORA_SCALE)))


def plain_linear(net: Net, x: str, name: str, rows: int, columns: int) -> str:
    return net.linear(x, name, rows, columns)


def softmax_attention(net: Net, q: str, k: str, v: str, scale: float) -> str:
    scores = net.node("Mul", net.node("MatMul", q, k), net.scalar(scale))
    return net.node("MatMul", net.node("Softmax", scores, axis=-1), v)


def scores_first(net: Net, q: str, k: str, v: str, scale: float) -> str:
    """(q kᵀ) v: quadratic in the length of the sequence, as the formula is usually written."""
    return net.node("MatMul", net.node("Mul", net.node("MatMul", q, k), net.scalar(scale)), v)


def lora_transformer(linear: LoraLinear = adapted_linear) -> onnx.ModelProto:
    return _transformer("lora-transformer", linear, softmax_attention, width=512, heads=8, length=128)


def linear_attention(attend: Attend = scores_first) -> onnx.ModelProto:
    return _transformer("linear-attention", plain_linear, attend, width=256, heads=4, length=1024, damping=1 / 1024)


def _transformer(
    name: str, linear: LoraLinear, attend: Attend, width: int, heads: int, length: int, damping: float = 1.0
) -> onnx.ModelProto:
    """An encoder that normalizes first. Damping stands in for what Softmax does where there is none."""
    net, x, size = Net(name), "tokens", width // heads
    scale = damping * size**-0.5
    for i in range(LAYERS):
        y = net.layer_norm(x, f"layer{i}.norm1", width)
        parts = [linear(net, y, f"layer{i}.{part}", width, width) for part in ("query", "key", "value")]
        parts = [net.node("Reshape", part, net.integers(1, length, heads, size)) for part in parts]
        q, k, v = (
            net.node("Transpose", p, perm=perm)
            for p, perm in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        y = net.node("Transpose", attend(net, q, k, v, scale), perm=[0, 2, 1, 3])
        y = net.node("Reshape", y, net.integers(1, length, width))
        x = net.node("Add", x, linear(net, y, f"layer{i}.out", width, width))
        y = linear(net, net.layer_norm(x, f"layer{i}.norm2", width), f"layer{i}.up", width, 4 * width)
        x = net.node("Add", x, linear(net, net.node("Relu", y), f"layer{i}.down", 4 * width, width))
    net.output(net.layer_norm(x, "norm", width), "out")
    return net.model({"tokens": [1, length, width]}, {"out": [1, length, width]})


def chain_of_products(net: Net, x: str, name: str, width: int, count: int) -> str:
    """((x W1) W2) …"""
    for i in range(count):
        x = net.product(x, f"{name}.{i}", width, width)
    return x


def matmul_chain(chain: Chain = chain_of_products) -> onnx.ModelProto:
    """Layers that were factored into two or three matrices, and never multiplied out again."""
    net, x, width, rows = Net("matmul-chain"), "x", 512, 64
    for i in range(6):
        y = net.shifted(chain(net, x, f"layer{i}", width, 2 + i % 2), f"layer{i}", width)
        x = net.node("Relu", y)
    net.output(x, "out")
    return net.model({"x": [rows, width]}, {"out": [rows, width]})


def spelled_gelu(net: Net, x: str, turn: int) -> str:
    """Two spellings with erf, two with tanh."""
    half, one = net.scalar(0.5), net.scalar(1.0)
    if turn % 4 == 0:
        shifted = net.node("Add", net.node("Erf", net.node("Div", x, net.scalar(2**0.5))), one)
        return net.node("Mul", net.node("Mul", x, shifted), half)
    if turn % 4 == 1:
        shifted = net.node("Add", net.node("Erf", net.node("Mul", x, net.scalar(0.5**0.5))), one)
        return net.node("Mul", net.node("Mul", half, x), shifted)
    if turn % 4 == 2:
        cube = net.node("Pow", x, net.scalar(3.0))
    else:
        cube = net.node("Mul", net.node("Mul", x, x), x)
    inner = net.node("Add", x, net.node("Mul", cube, net.scalar(0.044715)))
    tanh = net.node("Tanh", net.node("Mul", inner, net.scalar((2 / np.pi) ** 0.5)))
    return net.node("Mul", net.node("Mul", half, x), net.node("Add", tanh, one))


def gelu(activation: Activation = spelled_gelu) -> onnx.ModelProto:
    net, x, width, rows = Net("gelu-spelled"), "x", 256, 256
    for i in range(4):
        y = activation(net, net.linear(x, f"layer{i}.up", width, 4 * width), i)
        x = net.node("Add", x, net.linear(y, f"layer{i}.down", 4 * width, width))
    net.output(x, "out")
    return net.model({"x": [1, rows, width]}, {"out": [1, rows, width]})


def spelled_silu(net: Net, x: str, turn: int) -> str:
    """x / (1 + exp(−x)), the sum in either order."""
    power = net.node("Exp", net.node("Neg", x))
    terms = (power, net.scalar(1.0)) if turn % 2 else (net.scalar(1.0), power)
    return net.node("Div", x, net.node("Add", *terms))


def silu(activation: Activation = spelled_silu) -> onnx.ModelProto:
    """Gated layers, as in Llama."""
    net, x, width, rows = Net("silu-spelled"), "x", 256, 256
    for i in range(4):
        gate = activation(net, net.product(x, f"layer{i}.gate", width, 3 * width), i)
        y = net.node("Mul", gate, net.product(x, f"layer{i}.up", width, 3 * width))
        x = net.node("Add", x, net.product(y, f"layer{i}.down", 3 * width, width))
    net.output(x, "out")
    return net.model({"x": [1, rows, width]}, {"out": [1, rows, width]})


def lstm_unrolled(steps: int = 16, width: int = 512) -> onnx.ModelProto:
    """A cell called in a loop that the exporter unrolled: two products for each of four gates, step after step."""
    net = Net("lstm-unrolled")
    hidden = cell = net.weight("zero_state", np.zeros((1, width), dtype=np.float32))
    states: list[str] = []
    for t in range(steps):
        x = net.node("Gather", "sequence", net.weight(f"step{t}", np.array(t, dtype=np.int64)), axis=1)
        gates = [_gate(net, x, hidden, gate, width) for gate in ("input", "forget", "cell", "output")]
        i, f, o = (net.node("Sigmoid", gates[n]) for n in (0, 1, 3))
        kept, added = net.node("Mul", f, cell), net.node("Mul", i, net.node("Tanh", gates[2]))
        cell = net.node("Add", kept, added)
        hidden = net.node("Mul", o, net.node("Tanh", cell))
        states.append(net.node("Unsqueeze", hidden, net.integers(1)))
    net.output(net.node("Concat", *states, axis=1), "states")
    return net.model({"sequence": [1, steps, width]}, {"states": [1, steps, width]})


def _gate(net: Net, x: str, hidden: str, gate: str, width: int) -> str:
    total = net.node("Add", net.product(x, f"{gate}.x", width, width), net.product(hidden, f"{gate}.h", width, width))
    return net.shifted(total, gate, width)


def chain_matrix(name: str, width: int, index: int) -> np.ndarray:
    """The factor that `chain_of_products` draws under this name."""
    return draw_matrix(f"{name}.{index}.weight", width, width)
