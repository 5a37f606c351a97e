# pyright: basic
"""Image networks of the benchmark that no exporter gives in the form wanted: built node by node, weights made up.

RepVGG-A0 and MobileOne-S0 are whole, in the form they are trained in: every block is a sum of convolutions, each with
its own BatchNormalization. Their block is written by a function that is given, so that handmade.py can give another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx

from benchmarks.building import Net, draw, draw_filters

EPSILON = 1e-5
PIXELS = 224
CLASSES = 1000

# Channels, blocks; the first block of each stage halves height and width.
REPVGG_STAGES = ((48, 2), (96, 4), (192, 14), (1280, 1))
MOBILEONE_STAGES = ((48, 2), (128, 8), (256, 10), (1024, 1))
MOBILEONE_COPIES = 4


@dataclass(frozen=True)
class Block:
    """A sum of convolutions of one input, and of the input itself where shapes allow, each normalized; then Relu."""

    name: str
    channels: int
    out: int
    kernels: tuple[int, ...]
    stride: int = 1
    groups: int = 1

    @property
    def keeps_input(self) -> bool:
        return self.channels == self.out and self.stride == 1


@dataclass(frozen=True)
class Normalization:
    scale: np.ndarray
    bias: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


def filters_of(block: Block, branch: int) -> np.ndarray:
    name = f"{block.name}.branch{branch}.weight"
    return draw_filters(name, block.out, block.channels // block.groups, block.kernels[branch], gain=1.0)


def normalization_of(block: Block, branch: str, branches: int) -> Normalization:
    """Scales that leave the sum of all branches about as large as one."""
    name, share = f"{block.name}.{branch}", 1 / branches**0.5
    return Normalization(
        draw(f"{name}.scale", block.out, low=0.5 * share, high=1.5 * share),
        draw(f"{name}.shift", block.out) * np.float32(0.1),
        draw(f"{name}.mean", block.out) * np.float32(0.1),
        draw(f"{name}.variance", block.out, low=0.5, high=1.5),
    )


def branches(block: Block) -> list[tuple[str, int | None]]:
    """Names of the summed branches; the index of a convolution, or none for the input itself."""
    found: list[tuple[str, int | None]] = [(f"branch{i}", i) for i in range(len(block.kernels))]
    return [*found, ("input", None)] if block.keeps_input else found


Write = Callable[[Net, str, Block], str]


def spelled_out(net: Net, x: str, block: Block) -> str:
    """The block as it is trained."""
    names = branches(block)
    total = ""
    for name, index in names:
        y = x
        if index is not None:
            kernel = block.kernels[index]
            filters = net.weight(f"{block.name}.{name}.weight", filters_of(block, index))
            y = net.convolution(x, filters, "", kernel, block.stride, block.groups)
        n = normalization_of(block, name, len(names))
        parts = {"scale": n.scale, "shift": n.bias, "mean": n.mean, "variance": n.variance}
        weights = [net.weight(f"{block.name}.{name}.{part}", value) for part, value in parts.items()]
        y = net.node("BatchNormalization", y, *weights, epsilon=EPSILON)
        total = net.node("Add", total, y) if total else y
    return net.node("Relu", total)


def repvgg(write: Write = spelled_out) -> onnx.ModelProto:
    net = Net("repvgg")
    x, channels = write(net, "image", Block("stem", 3, 48, (3, 1), stride=2)), 48
    for stage, (out, depth) in enumerate(REPVGG_STAGES):
        for i in range(depth):
            x = write(net, x, Block(f"stage{stage}.{i}", channels, out, (3, 1), stride=2 if i == 0 else 1))
            channels = out
    return _classifier(net, x, channels)


def mobileone(write: Write = spelled_out) -> onnx.ModelProto:
    """Blocks in twos: each channel by itself, then across channels."""
    net, copies = Net("mobileone"), MOBILEONE_COPIES
    x, channels = write(net, "image", Block("stem", 3, 48, (3,) * copies + (1,), stride=2)), 48
    for stage, (out, depth) in enumerate(MOBILEONE_STAGES):
        for i in range(depth):
            name, stride = f"stage{stage}.{i}", 2 if i == 0 else 1
            depthwise = Block(f"{name}.depthwise", channels, channels, (3,) * copies + (1,), stride, channels)
            x = write(net, x, depthwise)
            x = write(net, x, Block(f"{name}.pointwise", channels, out, (1,) * copies))
            channels = out
    return _classifier(net, x, channels)


def _classifier(net: Net, x: str, channels: int) -> onnx.ModelProto:
    x = net.node("Flatten", net.node("GlobalAveragePool", x), axis=1)
    weight = net.weight("head.weight", draw("head.weight", CLASSES, channels) * np.float32((3 / channels) ** 0.5))
    bias = net.weight("head.bias", draw("head.bias", CLASSES))
    net.output(net.node("Gemm", x, weight, bias, alpha=1.0, beta=1.0, transB=1), "scores")
    return net.model({"image": [1, 3, PIXELS, PIXELS]}, {"scores": [1, CLASSES]})


def retinanet_head(
    levels: tuple[int, ...] = (32, 16, 8, 4, 2), channels: int = 256, anchors: int = 9, classes: int = 20
) -> onnx.ModelProto:
    """One head for classes and one for boxes, the same weights on every level of a feature pyramid."""
    net, found = Net("retinanet-head"), {}
    for output, width in (("classes", classes), ("boxes", 4)):
        flat: list[str] = []
        for level, size in enumerate(levels):
            x = f"level{level}"
            for i in range(4):
                x = net.node("Relu", net.drawn_convolution(x, f"{output}.{i}", channels, channels))
            x = net.drawn_convolution(x, f"{output}.last", channels, anchors * width)
            x = net.node("Reshape", x, net.integers(1, anchors, width, size, size))
            x = net.node("Transpose", x, perm=[0, 3, 4, 1, 2])
            flat.append(net.node("Reshape", x, net.integers(1, -1, width)))
        x = net.node("Concat", *flat, axis=1)
        net.output(net.node("Sigmoid", x) if output == "classes" else x, output)
        found[output] = [1, anchors * sum(s * s for s in levels), width]
    return net.model({f"level{i}": [1, channels, s, s] for i, s in enumerate(levels)}, found)


def dilated_cnn(width: int = 32, pixels: int = PIXELS) -> onnx.ModelProto:
    """CSRNet at half its width: the first ten convolutions of VGG-16, six dilated ones, a density map."""
    net, x, channels = Net("dilated-cnn"), "image", 3
    for stage, (times, depth) in enumerate(((1, 2), (2, 2), (4, 3), (8, 3))):
        if stage:
            x = net.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        for i in range(depth):
            x = net.node("Relu", net.drawn_convolution(x, f"front{stage}.{i}", channels, times * width))
            channels = times * width
    for i, times in enumerate((8, 8, 8, 4, 2, 1)):
        x = net.node("Relu", net.drawn_convolution(x, f"back.{i}", channels, times * width, dilation=2))
        channels = times * width
    net.output(net.drawn_convolution(x, "density", channels, 1, kernel=1), "density")
    return net.model({"image": [1, 3, pixels, pixels]}, {"density": [1, 1, pixels // 8, pixels // 8]})


Activation = Callable[[Net, str, int], str]


def spelled_hard_swish(net: Net, x: str, turn: int) -> str:
    """x · clip(x + 3, 0, 6) / 6, as three exporters write it."""
    three, zero, six, sixth = (net.scalar(v) for v in (3.0, 0.0, 6.0, 1 / 6))
    clipped = net.node("Clip", net.node("Add", x, three), zero, six)
    if turn % 3 == 0:
        return net.node("Div", net.node("Mul", x, clipped), six)
    if turn % 3 == 1:
        return net.node("Mul", x, net.node("Div", clipped, six))
    return net.node("Mul", net.node("Mul", x, clipped), sixth)


def hard_swish(activation: Activation = spelled_hard_swish) -> onnx.ModelProto:
    """Inverted residuals of a MobileNet, one size throughout, two activations each."""
    net, pixels, narrow, wide, blocks = Net("hardswish-spelled"), 56, 64, 256, 6
    x = "features"
    for i in range(blocks):
        y = activation(net, net.drawn_convolution(x, f"block{i}.widen", narrow, wide, kernel=1), 2 * i)
        y = activation(net, net.drawn_convolution(y, f"block{i}.filter", wide, wide, groups=wide), 2 * i + 1)
        x = net.node("Add", x, net.drawn_convolution(y, f"block{i}.narrow", wide, narrow, kernel=1))
    net.output(x, "out")
    return net.model({"features": [1, narrow, pixels, pixels]}, {"out": [1, narrow, pixels, pixels]})
