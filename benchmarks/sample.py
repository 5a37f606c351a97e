# pyright: basic
"""Build the small network that `make demo` optimizes.

    python benchmarks/sample.py OUT.onnx

It is an inverted-residual image classifier, written the way exporters write one before anything has tidied it:
a convolution without bias gets a bias of zeros by way of Shape, Expand and CastLike (torch's exporter does so), and
there are Dropout and Identity nodes, transposes that cancel, a Reshape of a Reshape, one value computed twice and
HardSwish spelled out. onnxruntime cannot see that the bias is constant, because CastLike reads the activation's
type, so at every level of optimization it leaves the BatchNormalizations and what follows them where they are.

The weights are made up, from a generator whose stream is fixed for good: the file is the same on every machine, and
nobody's licence is attached to it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 18, 8
CLASSES = 40
# Expanded channels, channels out, stride, whether a HardSwish takes the place of the last Relu.
BLOCKS = ((48, 16, 2, False), (64, 16, 1, False), (96, 24, 2, False), (96, 24, 1, False), (128, 32, 2, True))


@dataclass
class Builder:
    """Nodes and weights in the order they are made; each method returns the name of the value it makes."""

    random: np.random.RandomState
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], name=f"node_{name}", **attributes))
        return name

    def weight(self, value: np.ndarray) -> str:
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def constant(self, value: np.ndarray) -> str:
        return self.node("Constant", value=numpy_helper.from_array(value))

    def uniform(self, *shape: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
        # random_sample is exact arithmetic on the stream: no library's logarithm has a say in the weights.
        return (low + (high - low) * self.random.random_sample(shape)).astype(np.float32)

    def convolution(self, x: str, channels: int, out: int, kernel: int, stride: int = 1, groups: int = 1) -> str:
        """A convolution that has no bias, with the bias its exporter gives it."""
        fan_in = channels // groups * kernel * kernel
        weight = self.weight(self.uniform(out, channels // groups, kernel, kernel) * np.float32((3 / fan_in) ** 0.5))
        one = self.node("Constant", value_ints=[1])
        length = self.node("Expand", self.node("Shape", weight, start=0, end=1), one)
        zero = self.node("CastLike", self.constant(np.array(0, dtype=np.float32)), x)
        bias = self.node("Expand", zero, length)
        return self.node(
            "Conv",
            *(x, weight, bias),
            dilations=[1, 1],
            group=groups,
            pads=[kernel // 2] * 4,
            strides=[stride, stride],
        )

    def normalized(self, x: str, channels: int) -> str:
        scale, variance = self.uniform(channels, low=0.5, high=1.5), self.uniform(channels, low=0.5, high=1.5)
        bias, mean = self.uniform(channels), self.uniform(channels)
        return self.node(
            "BatchNormalization",
            *(x, self.weight(scale), self.weight(bias), self.weight(mean), self.weight(variance)),
            epsilon=1e-5,
            momentum=0.9,
        )

    def hard_swish(self, x: str) -> str:
        """x · clip(x + 3, 0, 6) / 6"""
        three, zero, six = (self.constant(np.array(v, dtype=np.float32)) for v in (3, 0, 6))
        clipped = self.node("Clip", self.node("Add", x, three), zero, six)
        return self.node("Div", self.node("Mul", x, clipped), six)

    def block(self, x: str, channels: int, wide: int, out: int, stride: int, swish: bool) -> str:
        """Widen, filter each channel by itself, narrow; added to its input where the shapes allow it."""
        y = self.node("Relu", self.normalized(self.convolution(x, channels, wide, 1), wide))
        y = self.normalized(self.convolution(y, wide, wide, 3, stride, wide), wide)
        y = self.hard_swish(y) if swish else self.node("Relu", y)
        y = self.normalized(self.convolution(y, wide, out, 1), out)
        return self.node("Add", x, y) if channels == out and stride == 1 else self.node("Identity", y)

    def classifier(self, x: str, channels: int) -> str:
        """Pooling, then a flattening that asks the tensor for its own size, twice."""
        x = self.node("GlobalAveragePool", x)
        first = self.constant(np.array(0, dtype=np.int64))
        batches = [self.node("Gather", self.node("Shape", x), first, axis=0) for _ in range(2)]
        axis, rest = self.node("Constant", value_ints=[0]), self.node("Constant", value_ints=[-1])
        once = self.node("Concat", self.node("Unsqueeze", batches[0], axis), rest, axis=0)
        again = self.node("Concat", self.node("Unsqueeze", batches[1], axis), rest, axis=0)
        x = self.node("Reshape", self.node("Reshape", x, once), again)
        x = self.node("Dropout", x)
        weight, bias = (
            self.weight(self.uniform(CLASSES, channels) * np.float32(0.2)),
            self.weight(self.uniform(CLASSES)),
        )
        return self.node("Gemm", x, weight, bias, alpha=1.0, beta=1.0, transB=1)


def build() -> onnx.ModelProto:
    builder = Builder(np.random.RandomState(7))
    x = builder.node("Transpose", builder.node("Transpose", "image", perm=[0, 2, 3, 1]), perm=[0, 3, 1, 2])
    channels = 16
    x = builder.node("Relu", builder.normalized(builder.convolution(x, 3, channels, 3, 2), channels))
    for wide, out, stride, swish in BLOCKS:
        x, channels = builder.block(x, channels, wide, out, stride, swish), out
    builder.nodes.append(
        helper.make_node("Identity", [builder.classifier(x, channels)], ["scores"], name="node_scores")
    )
    graph = helper.make_graph(
        builder.nodes,
        "sample",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 160, 160])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", CLASSES])],
        builder.weights,
        doc_string="An inverted-residual classifier with made-up weights, spelled the way exporters do.",
    )
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="superopt-sample")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("output", type=Path, metavar="OUT.onnx")
    path: Path = parser.parse_args(arguments).output
    if path.suffix != ".onnx":
        parser.error(f"expected a path ending in .onnx, found {path}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(build().SerializeToString(deterministic=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
