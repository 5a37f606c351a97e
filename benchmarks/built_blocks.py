# pyright: basic
"""Single blocks that are known to gain much by one rewrite, alone: what the whole networks that have them gain is less.

What can be merged by hand is written by a function that is given, so that handmade.py can give another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import onnx

from benchmarks import built_variants
from benchmarks.building import Net
from benchmarks.built_images import Activation, Block, Write, spelled_hard_swish, spelled_out
from benchmarks.built_sequences import Attend, LoraLinear, adapted_linear, scores_first
from benchmarks.built_variants import Gates, separate_gates

LENGTH, WIDTH = 128, 768
CHANNELS, PIXELS = 128, 28


def linear_attention_block(attend: Attend = scores_first) -> onnx.ModelProto:
    """On queries, transposed keys and values that are given."""
    net, heads, length, size = Net("linear-attention-block"), 8, 1024, 64
    net.output(attend(net, "queries", "keys", "values", (size * length) ** -0.5), "out")
    rows, columns = [1, heads, length, size], [1, heads, size, length]
    return net.model({"queries": rows, "keys": columns, "values": rows}, {"out": rows})


QKV = ("query", "key", "value")


def three_layers(net: Net, x: str) -> list[str]:
    return [net.linear(x, name, WIDTH, WIDTH) for name in QKV]


Project: TypeAlias = Callable[[Net, str], list[str]]


def qkv_block(project: Project = three_layers) -> onnx.ModelProto:
    """Three products of one input, as attention has them."""
    net, size = Net("qkv-block"), [1, LENGTH, WIDTH]
    for value, name in zip(project(net, "tokens"), QKV, strict=True):
        net.output(value, name)
    return net.model({"tokens": size}, dict.fromkeys(QKV, size))


def lora_block(linear: LoraLinear = adapted_linear) -> onnx.ModelProto:
    """One layer with its adapter."""
    net, size = Net("lora-block"), [1, LENGTH, WIDTH]
    net.output(linear(net, "tokens", "layer", WIDTH, WIDTH), "out")
    return net.model({"tokens": size}, {"out": size})


def hard_swish_block(activation: Activation = spelled_hard_swish) -> onnx.ModelProto:
    """The activation and nothing else."""
    net, size = Net("hardswish-block"), [1, CHANNELS, 2 * PIXELS, 2 * PIXELS]
    net.output(activation(net, "features", 0), "out")
    return net.model({"features": size}, {"out": size})


def repvgg_block(write: Write = spelled_out) -> onnx.ModelProto:
    """Three branches of one convolution."""
    net, size = Net("repvgg-block"), [1, CHANNELS, PIXELS, PIXELS]
    net.output(write(net, "features", Block("block", CHANNELS, CHANNELS, (3, 1))), "out")
    return net.model({"features": size}, {"out": size})


def nasrnn_cell(gates: Gates = separate_gates, width: int = 512) -> onnx.ModelProto:
    """Sixteen products of two inputs."""
    net, size = Net("nasrnn-cell"), [1, width]
    net.output(built_variants.nasrnn_cell(net, "x", "state", "cell", width, gates), "out")
    return net.model({"x": size, "state": size}, {"out": size})


MODELS = {
    "linear-attention-block": linear_attention_block,
    "qkv-block": qkv_block,
    "lora-block": lora_block,
    "hardswish-block": hard_swish_block,
    "repvgg-block": repvgg_block,
    "nasrnn-cell": nasrnn_cell,
}
