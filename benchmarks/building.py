# pyright: basic
"""What the models of built.py and handmade.py are put together with.

A weight is a function of its name: whoever asks for `layer0.query` gets the same numbers, in whatever order and for
whatever form of the network. So one network can be written twice, spelled out and merged by hand.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8  # what torch's older exporter writes
CONTRIB = "com.microsoft"
SEED = 0

Shapes = Mapping[str, Sequence[int]]


def draw(name: str, *shape: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """Uniform float32 numbers that depend on the name and the shape alone."""
    random = np.random.default_rng([SEED, zlib.crc32(name.encode())])
    return random.uniform(low, high, shape).astype(np.float32)


def draw_matrix(name: str, rows: int, columns: int, gain: float = 1.0) -> np.ndarray:
    """A weight that keeps the size of what it multiplies."""
    return draw(name, rows, columns) * np.float32(gain * (3 / rows) ** 0.5)


def draw_filters(name: str, out: int, channels: int, kernel: int, gain: float = 2**0.5) -> np.ndarray:
    """Filters of a convolution; the gain is the one that Relu asks for."""
    return draw(name, out, channels, kernel, kernel) * np.float32(gain * (3 / (channels * kernel * kernel)) ** 0.5)


@dataclass
class Net:
    """Nodes and weights in the order they are made; each method returns the name of the value it makes."""

    name: str
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        return self.nodes_with(operator, inputs, 1, **attributes)[0]

    def nodes_with(self, operator: str, inputs: Sequence[str], outputs: int, **attributes: Any) -> list[str]:
        name = f"{operator.lower()}_{len(self.nodes)}"
        made = [name if outputs == 1 else f"{name}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, made, name=f"node_{name}", **attributes))
        return made

    def weight(self, name: str, value: np.ndarray) -> str:
        """Asked for again by the same name, it is shared."""
        if name not in self.weights:
            self.weights[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name

    def scalar(self, value: float) -> str:
        return self.weight(f"scalar_{value!r}", np.array(value, dtype=np.float32))

    def integers(self, *values: int) -> str:
        return self.weight(f"integers_{'_'.join(map(str, values))}", np.array(values, dtype=np.int64))

    def convolution(
        self, x: str, filters: str, bias: str, kernel: int, stride: int = 1, groups: int = 1, dilation: int = 1
    ) -> str:
        """Padded so that a stride of 1 keeps height and width; without a bias where its name is empty."""
        return self.node(
            "Conv",
            *((x, filters, bias) if bias else (x, filters)),
            dilations=[dilation, dilation],
            group=groups,
            kernel_shape=[kernel, kernel],
            pads=[dilation * (kernel // 2)] * 4,
            strides=[stride, stride],
        )

    def drawn_convolution(
        self, x: str, name: str, channels: int, out: int, kernel: int = 3, groups: int = 1, dilation: int = 1
    ) -> str:
        filters = self.weight(f"{name}.weight", draw_filters(f"{name}.weight", out, channels // groups, kernel))
        bias = self.weight(f"{name}.bias", draw(f"{name}.bias", out) * np.float32(0.1))
        return self.convolution(x, filters, bias, kernel, 1, groups, dilation)

    def product(self, x: str, name: str, rows: int, columns: int, gain: float = 1.0) -> str:
        """x times a constant matrix."""
        return self.node("MatMul", x, self.weight(f"{name}.weight", draw_matrix(f"{name}.weight", rows, columns, gain)))

    def shifted(self, x: str, name: str, columns: int) -> str:
        return self.node("Add", x, self.weight(f"{name}.bias", draw(f"{name}.bias", columns) * np.float32(0.1)))

    def linear(self, x: str, name: str, rows: int, columns: int) -> str:
        return self.shifted(self.product(x, name, rows, columns), name, columns)

    def layer_norm(self, x: str, name: str, width: int) -> str:
        scale = self.weight(f"{name}.weight", draw(f"{name}.weight", width, low=0.5, high=1.5))
        bias = self.weight(f"{name}.bias", draw(f"{name}.bias", width))
        return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)

    def model(self, inputs: Shapes, outputs: Shapes) -> onnx.ModelProto:
        """All inputs and outputs are float32."""

        def described(shapes: Shapes) -> list[onnx.ValueInfoProto]:
            return [helper.make_tensor_value_info(n, TensorProto.FLOAT, list(s)) for n, s in shapes.items()]

        graph = helper.make_graph(
            self.nodes, self.name, described(inputs), described(outputs), list(self.weights.values())
        )
        domains = {node.domain for node in self.nodes} - {""}
        opsets = [helper.make_opsetid("", OPSET), *(helper.make_opsetid(d, 1) for d in sorted(domains))]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="superopt-benchmarks"
        )

    def output(self, x: str, name: str) -> None:
        """The value leaves the network under this name; whoever makes or reads it calls it so from now on."""
        for node in self.nodes:
            for names in (node.input, node.output):
                for i, found in enumerate(names):
                    if found == x:
                        names[i] = name
