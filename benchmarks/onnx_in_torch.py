# pyright: basic, reportMissingImports=false
"""A network of built.py as a torch module: node by node, so that torch.compile sees the same network, spelled the same.

Only the operators that those networks use; another one is an error, not a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx
import torch
import torch.nn.functional as F
from onnx import helper, numpy_helper

Attributes = Mapping[str, Any]
Function = Callable[..., Any]


def _conv(a: Attributes, x, weight, bias=None):
    rank = weight.dim() - 2
    convolve = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[rank]
    pads = list(a.get("pads", [0] * 2 * rank))
    if pads[:rank] != pads[rank:]:
        raise NotImplementedError("Conv with pads that differ from side to side")
    return convolve(x, weight, bias, a.get("strides", 1), pads[:rank], a.get("dilations", 1), a.get("group", 1))


def _batch_normalization(a: Attributes, x, scale, bias, mean, variance):
    return F.batch_norm(x, mean, variance, scale, bias, eps=a.get("epsilon", 1e-5))


def _layer_normalization(a: Attributes, x, scale, bias=None):
    return F.layer_norm(x, scale.shape, scale, bias, a.get("epsilon", 1e-5))


def _gemm(a: Attributes, x, weight, bias=None):
    x, weight = (x.t() if a.get("transA") else x), (weight.t() if a.get("transB") else weight)
    product = a.get("alpha", 1.0) * (x @ weight)
    return product if bias is None else product + a.get("beta", 1.0) * bias


def _reshape(a: Attributes, x, shape):
    return x.reshape([x.shape[i] if size == 0 else size for i, size in enumerate(shape)])


def _unsqueeze(a: Attributes, x, axes):
    (axis,) = axes
    return x.unsqueeze(axis)


def _gather(a: Attributes, x, index):
    if not isinstance(index, int):
        raise NotImplementedError("Gather with more than one index")
    return x.select(a.get("axis", 0), index)


FUNCTIONS: dict[str, Function] = {
    "Add": lambda a, x, y: x + y,
    "BatchNormalization": _batch_normalization,
    "Clip": lambda a, x, low, high: torch.clamp(x, low, high),
    "Concat": lambda a, *xs: torch.cat(xs, a["axis"]),
    "Conv": _conv,
    "Div": lambda a, x, y: x / y,
    "Erf": lambda a, x: torch.erf(x),
    "Exp": lambda a, x: torch.exp(x),
    "Flatten": lambda a, x: x.flatten(a.get("axis", 1)),
    "Gather": _gather,
    "Gemm": _gemm,
    "GlobalAveragePool": lambda a, x: x.mean(tuple(range(2, x.dim())), keepdim=True),
    "LayerNormalization": _layer_normalization,
    "MatMul": lambda a, x, y: x @ y,
    "MaxPool": lambda a, x: F.max_pool2d(x, a["kernel_shape"], a["strides"]),
    "Mul": lambda a, x, y: x * y,
    "Neg": lambda a, x: -x,
    "Pow": lambda a, x, y: x**y,
    "Relu": lambda a, x: F.relu(x),
    "Reshape": _reshape,
    "Sigmoid": lambda a, x: torch.sigmoid(x),
    "Softmax": lambda a, x: F.softmax(x, a.get("axis", -1)),
    "Tanh": lambda a, x: torch.tanh(x),
    "Transpose": lambda a, x: x.permute(a["perm"]),
    "Unsqueeze": _unsqueeze,
}


class Network(torch.nn.Module):
    """Weights are buffers; whole numbers (shapes, axes, indices) are Python's, so that nothing breaks the graph."""

    def __init__(self, model: onnx.ModelProto) -> None:
        super().__init__()
        graph = model.graph
        self.inputs = [described.name for described in graph.input]
        self.outputs = [described.name for described in graph.output]
        self.fixed: dict[str, Any] = {}
        self.buffer_of: dict[str, str] = {}
        for i, tensor in enumerate(graph.initializer):
            value = numpy_helper.to_array(tensor)
            if value.dtype.kind == "f":
                self.buffer_of[tensor.name] = f"weight{i}"
                self.register_buffer(f"weight{i}", torch.from_numpy(value.copy()))
            else:
                self.fixed[tensor.name] = value.tolist()
        self.steps = [
            (
                FUNCTIONS[node.op_type],
                {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute},
                list(node.input),
                node.output[0],
            )
            for node in graph.node
        ]

    def forward(self, *arguments):
        known = dict(zip(self.inputs, arguments, strict=True)) | self.fixed
        known |= {name: getattr(self, buffer) for name, buffer in self.buffer_of.items()}
        for function, attributes, inputs, output in self.steps:
            known[output] = function(attributes, *(known[name] for name in inputs if name))
        return tuple(known[name] for name in self.outputs)
