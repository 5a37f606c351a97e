# pyright: basic
"""Parts of networks that work on images, each in several forms."""

from __future__ import annotations

import numpy as np

from benchmarks.form import Form, Part, drawn, node


def depthwise(rng) -> Part:
    """ConvNeXt's windows of 7 x 7, one channel each."""
    channels, side = 96, 56
    constants = {"k": drawn(rng, channels, 1, 7, 7), "b": drawn(rng, channels)}
    same = {"group": channels, "pads": [3, 3, 3, 3]}
    forms = [
        Form("Conv with bias", [node("Conv", "x k b", "out", **same)], constants),
        Form("Conv", [node("Conv", "x k", "out", **same)], constants),
    ]
    return Part(
        "windows of 7 x 7 by channel, 16 x 96 x 56 x 56", drawn(rng, 16, channels, side, side, scale=1.0), forms
    )


def by_channel(rng, channels: int, side: int) -> Part:
    """A scale and a shift by channel with Relu behind it, as DenseNet has them in front of each convolution."""
    scale, shift = (1 + drawn(rng, channels, 1, 1)).astype(np.float16), drawn(rng, channels, 1, 1)
    constants = {
        "s": scale, "t": shift, "u": (-shift / scale).astype(np.float16), "m": np.zeros(channels, np.float16),
        "s1": scale.reshape(-1), "t1": shift.reshape(-1), "v": np.ones(channels, np.float16),
        "k": scale.reshape(channels, 1, 1, 1),
    }  # fmt: skip
    norm = node("BatchNormalization", "x s1 t1 m v", "y", epsilon=0.0)
    relu = node("Relu", "y", "out")
    forms = [
        Form("BatchNormalization, Relu", [norm, relu], constants),
        Form("Mul, Add, Relu", [node("Mul", "x s", "p"), node("Add", "p t", "y"), relu], constants),
        Form("Mul, Sum, Relu", [node("Mul", "x s", "p"), node("Sum", "p t", "y"), relu], constants),
        Form("a convolution by channel, Relu", [node("Conv", "x k t1", "y", group=channels), relu], constants),
        Form("BatchNormalization alone", [node("BatchNormalization", "x s1 t1 m v", "out", epsilon=0.0)], constants),
        Form("Relu alone", [node("Relu", "x", "out")], constants),
        Form("Max by channel alone", [node("Max", "x u", "out")], constants),
    ]
    return Part(
        f"scale and shift by channel, 16 x {channels} x {side} x {side}",
        drawn(rng, 16, channels, side, side, scale=1.0),
        forms,
    )


def means(rng, channels: int, side: int, dtype: type = np.float32) -> Part:
    """Of each channel over an image, as blocks that weigh channels have them."""
    pixels = side * side
    constants = {
        "k": np.full((pixels, 1), 1 / pixels, dtype), "rows": np.array([channels, pixels]),
        "shape": np.array([1, channels, 1, 1]),
    }  # fmt: skip
    product = [node("Reshape", "x rows", "r"), node("MatMul", "r k", "m"), node("Reshape", "m shape", "out")]
    forms = [
        Form("GlobalAveragePool", [node("GlobalAveragePool", "x", "out")], constants),
        Form("AveragePool", [node("AveragePool", "x", "out", kernel_shape=[side, side])], constants),
        Form("ReduceMean", [node("ReduceMean", "x", "out", axes=[2, 3])], constants),
        Form("a product with equal weights", product, constants),
    ]
    x = drawn(rng, 1, channels, side, side, scale=1.0).astype(dtype)
    return Part(f"means of {channels} channels of {side} x {side}, {np.dtype(dtype).name}", x, forms)


def fire(rng, squeezed: int, wide: int, after: int, side: int) -> Part:
    """A part of SqueezeNet: few channels, two convolutions of them side by side, and few channels again."""
    constants = {
        "k1": drawn(rng, wide, squeezed, 1, 1), "b1": drawn(rng, wide),
        "k3": drawn(rng, wide, squeezed, 3, 3), "b3": drawn(rng, wide),
        "k": drawn(rng, after, 2 * wide, 1, 1), "b": drawn(rng, after),
    }  # fmt: skip
    constants["kk"] = np.concatenate([np.pad(constants["k1"], ((0, 0), (0, 0), (1, 1), (1, 1))), constants["k3"]])
    constants["bb"] = np.concatenate([constants["b1"], constants["b3"]])
    small, large = node("Conv", "x k1 b1", "p"), node("Conv", "x k3 b3", "q", pads=[1, 1, 1, 1])
    last = node("Conv", "z k b", "out")
    joined = [node("Concat", "p q", "y", axis=1), node("Relu", "y", "z"), last]
    apart = [node("Relu", "p", "r"), node("Relu", "q", "s"), node("Concat", "r s", "z", axis=1), last]
    one = [node("Conv", "x kk bb", "y", pads=[1, 1, 1, 1]), node("Relu", "y", "z"), last]
    options = {"prefer_nhwc": "1", "fuse_conv_bias": "1"}
    forms = [
        Form("two convolutions, a Relu each, Concat", [small, large, *apart], constants, options),
        Form("two convolutions, Concat, Relu", [small, large, *joined], constants, options),
        Form("one convolution of 3 x 3, Relu", one, constants, options),
        Form("one convolution of 3 x 3, Relu, channels first", one, constants),
    ]
    return Part(
        f"fire, {squeezed} to 2 times {wide} to {after} channels, 16 x {side} x {side}",
        drawn(rng, 16, squeezed, side, side, scale=1.0),
        forms,
    )
