# pyright: basic
"""Forms in float32, where tensor cores compute in TF32: weights kept either way round."""

from __future__ import annotations

import numpy as np

from benchmarks.form import MICROSOFT, Form, Part, drawn, node


def layer(rng, rows: int) -> Part:
    """Two products with a Gelu between them."""
    width, inner = 768, 3072
    w, v, b, c = (
        drawn(rng, *shape).astype(np.float32) for shape in ((width, inner), (inner, width), (inner,), (width,))
    )
    across = {"w": w, "v": v, "b": b, "c": c}
    along = {**across, "w": np.ascontiguousarray(w.T), "v": np.ascontiguousarray(v.T)}

    def turned(inputs: str, output: str):
        return node("FusedMatMul", inputs, output, MICROSOFT, transB=1)

    bias_gelu = node("BiasGelu", "p b", "g", MICROSOFT)
    gelu = node("Gelu", "s", "g", MICROSOFT)
    end = node("Add", "q c", "out")
    forms = [
        Form("MatMul, BiasGelu, MatMul, Add", [node("MatMul", "x w", "p"), bias_gelu, node("MatMul", "g v", "q"), end],
             across),
        Form("the same with weights turned", [turned("x w", "p"), bias_gelu, turned("g v", "q"), end], along),
        Form("Gemm with its bias, Gelu, Gemm with its bias", [
            node("Gemm", "x w b", "s"), gelu, node("Gemm", "g v c", "out")], across),
        Form("the same with weights turned", [
            node("Gemm", "x w b", "s", transB=1), gelu, node("Gemm", "g v c", "out", transB=1)], along),
        Form("weights turned, biases by Sum", [
            turned("x w", "p"), node("Sum", "p b", "s"), gelu, turned("g v", "q"), node("Sum", "q c", "out")], along),
        Form("the products alone", [node("MatMul", "x w", "g"), node("MatMul", "g v", "out")], across),
        Form("the products alone, weights turned", [turned("x w", "g"), turned("g v", "out")], along),
    ]  # fmt: skip
    x = drawn(rng, rows, width, scale=1.0).astype(np.float32)
    return Part(f"a layer in float32, {rows} x {width} x {inner}", x, forms)


def attention(rng) -> Part:
    """As in ViT at a batch of 16: one operator, and a product with its weights turned before it."""
    batch, length, width, heads = 16, 197, 768, 12
    head = width // heads
    parts, b = drawn(rng, width, 3, heads, head).astype(np.float32), drawn(rng, 3 * width).astype(np.float32)
    by_head = parts.transpose(0, 2, 1, 3).reshape(width, -1)
    constants = {
        "w": parts.reshape(width, -1), "b": b, "p": by_head, "pt": np.ascontiguousarray(by_head.T),
        **{f"w{n}": np.ascontiguousarray(parts[:, k].reshape(width, width).T) for k, n in enumerate("qkv")},
        "packed": np.array([batch, length, heads, 3, head]),
    }  # fmt: skip

    def attend(inputs: str):
        return node("MultiHeadAttention", inputs, "out", MICROSOFT, num_heads=heads)

    def turned(inputs: str, output: str):
        return node("FusedMatMul", inputs, output, MICROSOFT, transB=1)

    reshape = node("Reshape", "g packed", "g5")
    spellings = {
        "Attention": [node("Attention", "x w b", "out", MICROSOFT, num_heads=heads)],
        "packed, biases in MultiHeadAttention": [node("MatMul", "x p", "g"), reshape, attend("g5 _ _ b")],
        "the same with weights turned": [turned("x pt", "g"), reshape, attend("g5 _ _ b")],
        "three products, weights turned": [*(turned(f"x w{n}", n) for n in "qkv"), attend("q k v b")],
    }
    forms = [
        Form(f"{name}, sdpa_kernel={kernel}", nodes, constants, {"sdpa_kernel": kernel})
        for kernel in ("0", "2")
        for name, nodes in spellings.items()
    ]
    x = drawn(rng, batch, length, width, scale=1.0).astype(np.float32)
    return Part(f"attention in float32, {batch} x {length} x {width}", x, forms)
