# pyright: basic
"""The networks of built.py as a careful person would write them: the same function, merged by hand.

Weights are combined in float64 and rounded once. What is measured against these is not slower than merging by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx

from benchmarks import built_blocks, built_images, built_sequences
from benchmarks.building import CONTRIB, Net, draw, draw_matrix
from benchmarks.built_images import EPSILON, Block, branches, filters_of, normalization_of
from benchmarks.built_sequences import LORA_SCALE, RANK, chain_matrix
from benchmarks.built_variants import gate_names


def merged_block(net: Net, x: str, block: Block) -> str:
    """One convolution whose filters are the sum of all branches', each padded to the largest window."""
    kernel = max(block.kernels)
    names = branches(block)
    filters = np.zeros((block.out, block.channels // block.groups, kernel, kernel))
    bias = np.zeros(block.out)
    for name, index in names:
        n = normalization_of(block, name, len(names))
        factor = n.scale.astype(np.float64) / np.sqrt(n.variance.astype(np.float64) + EPSILON)
        bias += n.bias - n.mean * factor
        found = identity_filters(block) if index is None else filters_of(block, index).astype(np.float64)
        margin = (kernel - found.shape[-1]) // 2
        filters += np.pad(found * factor[:, None, None, None], ((0, 0), (0, 0), (margin, margin), (margin, margin)))
    weights = net.weight(f"{block.name}.weight", filters.astype(np.float32))
    shift = net.weight(f"{block.name}.bias", bias.astype(np.float32))
    return net.node("Relu", net.convolution(x, weights, shift, kernel, block.stride, block.groups))


def identity_filters(block: Block) -> np.ndarray:
    """1 × 1 filters that give the input back, group by group."""
    each = block.channels // block.groups
    return np.tile(np.eye(each), (block.groups, 1))[:, :, None, None]


def merged_linear(net: Net, x: str, name: str, rows: int, columns: int) -> str:
    """x (W + s A B) + b"""
    base, a, b = (
        draw_matrix(f"{name}{part}.weight", *shape, gain=gain).astype(np.float64)
        for part, shape, gain in (
            ("", (rows, columns), 1.0),
            (".a", (rows, RANK), 1.0),
            (".b", (RANK, columns), 0.1),
        )
    )
    weight = net.weight(f"{name}.weight", (base + LORA_SCALE * (a @ b)).astype(np.float32))
    return net.shifted(net.node("MatMul", x, weight), name, columns)


def values_first(net: Net, q: str, k: str, v: str, scale: float) -> str:
    """q (kᵀ v): linear in the length of the sequence."""
    return net.node("MatMul", q, net.node("Mul", net.node("MatMul", k, v), net.scalar(scale)))


def multiplied_out(net: Net, x: str, name: str, width: int, count: int) -> str:
    total = np.eye(width)
    for i in range(count):
        total = total @ chain_matrix(name, width, i).astype(np.float64)
    return net.node("MatMul", x, net.weight(f"{name}.weight", total.astype(np.float32)))


def merged_layers(net: Net, x: str) -> list[str]:
    """One product and one bias for queries, keys and values."""
    width, names = built_blocks.WIDTH, built_blocks.QKV
    weights = [draw_matrix(f"{name}.weight", width, width) for name in names]
    biases = [draw(f"{name}.bias", width) * np.float32(0.1) for name in names]
    merged = net.node("MatMul", x, net.weight("merged.weight", np.concatenate(weights, axis=1)))
    shifted = net.node("Add", merged, net.weight("merged.bias", np.concatenate(biases)))
    return net.nodes_with("Split", (shifted, net.integers(*[width] * len(names))), len(names), axis=-1)


def merged_gates(net: Net, x: str, state: str, name: str, width: int) -> list[str]:
    """One product of both inputs for all gates."""
    gates = gate_names(name)
    rows = [[draw_matrix(f"{gate}.{part}.weight", width, width) for gate in gates] for part in ("x", "h")]
    both = net.node("Concat", x, state, axis=-1)
    product = net.node("MatMul", both, net.weight(f"{name}.merged", np.block(rows)))
    return net.nodes_with("Split", (product, net.integers(*[width] * len(gates))), len(gates), axis=-1)


def one_hard_swish(net: Net, x: str, turn: int) -> str:
    return net.node("HardSwish", x)


def one_gelu(net: Net, x: str, turn: int) -> str:
    return net.node("Gelu" if turn % 4 < 2 else "FastGelu", x, domain=CONTRIB)


def sigmoid_silu(net: Net, x: str, turn: int) -> str:
    """onnxruntime knows x · sigmoid(x)."""
    return net.node("Mul", x, net.node("Sigmoid", x))


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "repvgg-branches": partial(built_images.repvgg, merged_block),
    "mobileone-branches": partial(built_images.mobileone, merged_block),
    "hardswish-spelled": partial(built_images.hard_swish, one_hard_swish),
    "gelu-spelled": partial(built_sequences.gelu, one_gelu),
    "silu-spelled": partial(built_sequences.silu, sigmoid_silu),
    "lora-transformer": partial(built_sequences.lora_transformer, merged_linear),
    "linear-attention": partial(built_sequences.linear_attention, values_first),
    "matmul-chain": partial(built_sequences.matmul_chain, multiplied_out),
    "linear-attention-block": partial(built_blocks.linear_attention_block, values_first),
    "lora-block": partial(built_blocks.lora_block, merged_linear),
    "hardswish-block": partial(built_blocks.hard_swish_block, one_hard_swish),
    "repvgg-block": partial(built_blocks.repvgg_block, merged_block),
    "qkv-block": partial(built_blocks.qkv_block, merged_layers),
    "nasrnn-cell": partial(built_blocks.nasrnn_cell, merged_gates),
}
