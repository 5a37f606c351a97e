# pyright: basic
"""Networks that partially equivalent mutants are about: one set of weights on several images, dilated, transposed and
large convolutions, convolutions in space and time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx

from benchmarks.building import Net, draw, draw_filters

BATCHES = (1, 16)


def shared_head(batch: int, levels: tuple[int, ...] = (64, 32, 16, 8), channels: int = 128) -> onnx.ModelProto:
    """Four layers and their functions, the same weights on every level of a feature pyramid."""
    net = Net("shared-head")
    for level in range(len(levels)):
        x = f"level{level}"
        for i in range(4):
            x = net.node("Relu", net.drawn_convolution(x, f"tower.{i}", channels, channels))
        net.output(net.drawn_convolution(x, "last", channels, 36), f"out{level}")
    inputs = {f"level{k}": [batch, channels, n, n] for k, n in enumerate(levels)}
    return net.model(inputs, {f"out{k}": [batch, 36, n, n] for k, n in enumerate(levels)})


def dilated_back_end(batch: int, pixels: int = 28, width: int = 128) -> onnx.ModelProto:
    """The back-end of CSRNet at a quarter of its width: six dilated convolutions and a density map."""
    net, x, channels = Net("dilated-back-end"), "features", width
    for i, out in enumerate((width, width, width, width // 2, width // 4, width // 8)):
        x = net.node("Relu", net.drawn_convolution(x, f"back.{i}", channels, out, dilation=2))
        channels = out
    net.output(net.drawn_convolution(x, "density", channels, 1, kernel=1), "density")
    return net.model({"features": [batch, width, pixels, pixels]}, {"density": [batch, 1, pixels, pixels]})


def siamese(batch: int, channels: int = 64) -> onnx.ModelProto:
    """Two images of different size through the same three layers, as in a tracker."""
    net, sizes = Net("siamese"), {"template": 16, "scene": 32}
    for name in sizes:
        x = name
        for i in range(3):
            x = net.node("Relu", net.drawn_convolution(x, f"branch.{i}", channels, channels))
        net.output(x, f"{name}-features")
    inputs = {name: [batch, channels, n, n] for name, n in sizes.items()}
    return net.model(inputs, {f"{name}-features": shape for name, shape in inputs.items()})


def stage_3d(batch: int, channels: int = 64, frames: int = 4, pixels: int = 28) -> onnx.ModelProto:
    """Two blocks of ResNet3D-18."""
    net, x = Net("resnet3d-stage"), "video"
    shape = (channels, channels, 3, 3, 3)
    for block in range(2):
        y = x
        for i in range(2):
            name = f"block{block}.{i}"
            filters = net.weight(f"{name}.weight", draw(f"{name}.weight", *shape) * np.float32(0.04))
            bias = net.weight(f"{name}.bias", draw(f"{name}.bias", channels) * np.float32(0.1))
            y = net.node("Conv", y, filters, bias, kernel_shape=[3] * 3, pads=[1] * 6, strides=[1] * 3)
            y = net.node("Relu", y) if i == 0 else y
        x = net.node("Relu", net.node("Add", x, y))
    net.output(x, "features")
    video = [batch, channels, frames, pixels, pixels]
    return net.model({"video": video}, {"features": video})


def large_kernels(batch: int, channels: int = 48, pixels: int = 28) -> onnx.ModelProto:
    """Four convolutions of 5×5."""
    net, x = Net("conv5x5-stack"), "image"
    for i in range(4):
        x = net.node("Relu", net.drawn_convolution(x, f"layer.{i}", channels, channels, kernel=5))
    net.output(x, "features")
    return net.model({"image": [batch, channels, pixels, pixels]}, {"features": [batch, channels, pixels, pixels]})


def decoder(batch: int, channels: int = 128, pixels: int = 8) -> onnx.ModelProto:
    """Three transposed convolutions, each of which doubles height and width."""
    net, x, n = Net("conv-transpose-decoder"), "code", pixels
    for i in range(3):
        out = channels // 2
        filters = net.weight(f"up.{i}", draw_filters(f"up.{i}", channels, out, 4))
        bias = net.weight(f"up.{i}.bias", draw(f"up.{i}.bias", out) * np.float32(0.1))
        x = net.node("ConvTranspose", x, filters, bias, kernel_shape=[4, 4], pads=[1] * 4, strides=[2, 2])
        x, channels, n = net.node("Relu", x), out, 2 * n
    net.output(x, "image")
    return net.model({"code": [batch, 128, pixels, pixels]}, {"image": [batch, channels, n, n]})


_MADE: dict[str, Callable[[int], onnx.ModelProto]] = {
    "shared-head": shared_head,
    "dilated-back-end": dilated_back_end,
    "siamese": siamese,
    "resnet3d-stage": stage_3d,
    "conv5x5-stack": large_kernels,
    "conv-transpose-decoder": decoder,
}
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    f"{name}-b{batch}": partial(make, batch) for name, make in _MADE.items() for batch in BATCHES
}
"""Each at every batch size."""
