# pyright: basic
"""Forms of attention with something added to its scores: who adds the biases, and how queries, keys and values part."""

from __future__ import annotations

import numpy as np

from benchmarks.form import MICROSOFT, Form, Part, drawn, node


def masked(rng, batch: int, length: int, width: int) -> Part:
    """As in GPT-2: a mask for each sequence, all heads alike."""
    heads = width // 64
    parts, b = drawn(rng, width, 3, width), drawn(rng, 3, width)
    by_head = parts.reshape(width, 3, heads, 64).swapaxes(1, 2).reshape(width, -1)
    constants = {
        "w": parts.reshape(width, -1), "b": b.reshape(-1), "p": by_head,
        **{f"w{name}": np.ascontiguousarray(parts[:, k]) for k, name in enumerate("qkv")},
        **{f"b{name}": b[k] for k, name in enumerate("qkv")},
        "mask": np.where(rng.random((batch, 1, length, length)) < 0.5, 0, -65504).astype(np.float16),
        "thirds": np.array([width] * 3), "packed": np.array([batch, length, heads, 3, 64]),
    }  # fmt: skip

    def attend(inputs: str):
        return node("MultiHeadAttention", inputs, "out", MICROSOFT, num_heads=heads)

    product, split = node("MatMul", "x w", "g"), node("Split", "g thirds", "q k v", axis=2)
    apart = [node("MatMul", f"x w{name}", f"{name}0") for name in "qkv"]
    forms = [
        Form(
            "MatMul, Sum, Split, MultiHeadAttention",
            [node("MatMul", "x w", "s"), node("Sum", "s b", "g"), split, attend("q k v _ _ mask")],
            constants,
        ),
        Form("MatMul, Split, MultiHeadAttention with biases", [product, split, attend("q k v b _ mask")], constants),
        Form("Attention", [node("Attention", "x w b _ _ mask", "out", MICROSOFT, num_heads=heads)], constants),
        Form(
            "packed, MultiHeadAttention with biases",
            [node("MatMul", "x p", "g"), node("Reshape", "g packed", "g5"), attend("g5 _ _ b _ mask")],
            constants,
        ),
        Form("three products, MultiHeadAttention with biases", [*apart, attend("q0 k0 v0 b _ mask")], constants),
        Form(
            "three products, Sums, MultiHeadAttention",
            [*apart, *(node("Sum", f"{name}0 b{name}", name) for name in "qkv"), attend("q k v _ _ mask")],
            constants,
        ),
        Form("the same without biases", [*apart, attend("q0 k0 v0 _ _ mask")], constants),
        Form("the product alone", [node("MatMul", "x w", "out")], constants),
    ]
    return Part(f"masked attention, {batch} x {length} x {width}", drawn(rng, batch, length, width, scale=1.0), forms)
