# pyright: basic
"""A network of built.py at another batch size and in float16, and the NasRNN of the papers on graph substitution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.building import Net, draw

GATES = 8


def with_batch(model: onnx.ModelProto, batch: int) -> onnx.ModelProto:
    """The same network on `batch` times as much along the first axis of every input. Networks of built.py name that
    axis in their Reshapes alone, as a leading 1; initial states broadcast."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    if batch == 1:
        return changed
    graph = changed.graph
    for described in (*graph.input, *graph.output):
        described.type.tensor_type.shape.dim[0].dim_value *= batch
    weights = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Reshape" and (shape := numpy_helper.to_array(weights[node.input[1]]))[0] == 1:
            name = f"{node.input[1]}_batch"
            if name not in weights:
                weights[name] = numpy_helper.from_array(np.array([batch, *shape[1:]], dtype=np.int64), name)
                graph.initializer.append(weights[name])
            node.input[1] = name
    return changed


def as_float16(model: onnx.ModelProto) -> onnx.ModelProto:
    """Every float32 weight, input and output in float16; networks of built.py hold no other place for a type."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for described in (*changed.graph.input, *changed.graph.output):
        if described.type.tensor_type.elem_type == TensorProto.FLOAT:
            described.type.tensor_type.elem_type = TensorProto.FLOAT16
    for tensor in changed.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    return changed


def nasrnn(width: int = 512, steps: int = 5) -> onnx.ModelProto:
    """A chain of cells."""
    net = Net("nasrnn")
    state = net.weight("state", draw("state", 1, width))
    for t in range(steps):
        state = nasrnn_cell(net, f"x{t}", state, f"step{t}", width)
    net.output(state, "out")
    return net.model({f"x{t}": [1, width] for t in range(steps)}, {"out": [1, width]})


def gate_names(name: str) -> list[str]:
    return [f"{name}.gate{i}" for i in range(GATES)]


def separate_gates(net: Net, x: str, state: str, name: str, width: int) -> list[str]:
    """Two products each."""
    return [
        net.node("Add", net.product(x, f"{gate}.x", width, width), net.product(state, f"{gate}.h", width, width))
        for gate in gate_names(name)
    ]


Gates: TypeAlias = Callable[[Net, str, str, str, int], list[str]]


def nasrnn_cell(net: Net, x: str, state: str, name: str, width: int, gates: Gates = separate_gates) -> str:
    """Eight gates, put together pair by pair."""
    g = gates(net, x, state, name, width)
    relu, sigmoid, tanh = (_function(net, operator) for operator in ("Relu", "Sigmoid", "Tanh"))
    a, b = net.node("Add", relu(g[0]), sigmoid(g[3])), net.node("Add", sigmoid(g[1]), tanh(g[2]))
    c, d = net.node("Mul", sigmoid(g[4]), tanh(g[5])), net.node("Mul", sigmoid(g[6]), relu(g[7]))
    e, f = net.node("Add", sigmoid(b), tanh(c)), net.node("Mul", tanh(a), tanh(d))
    return tanh(net.node("Mul", tanh(e), tanh(f)))


def _function(net: Net, operator: str):
    return lambda x: net.node(operator, x)


def float_inputs(model: onnx.ModelProto, names: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Normal numbers for every input, or for those named, in the type that it asks for."""
    random = np.random.default_rng(0)
    found: dict[str, np.ndarray] = {}
    for described in model.graph.input:
        kind = described.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        drawn = random.standard_normal([d.dim_value for d in kind.shape.dim]).astype(dtype)
        if not names or described.name in names:
            found[described.name] = drawn
    return found
