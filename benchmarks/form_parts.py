# pyright: basic
"""The forms that forms.py times: parts of networks, each in several spellings of the same function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import onnx

from benchmarks.form import MICROSOFT, Form, Part, drawn, node
from benchmarks.form_attention import masked
from benchmarks.form_images import by_channel, depthwise, fire, means
from benchmarks.form_rows import activated, limits, movements, norms, pointwise, residuals
from benchmarks.form_singles import attention, layer


def whisper(rng) -> Part:
    """Attention of 16 sequences of 1500, with biases of queries and values, and the residual."""
    batch, length, width, heads = 16, 1500, 384, 6
    head = width // heads
    wq, wk, wv, wo = (drawn(rng, width, width) for _ in range(4))
    bq, bv, bo = (drawn(rng, width) for _ in range(3))
    zeros = np.zeros_like(bq)
    shared = {"wo": wo, "bo": bo}
    apart = {**shared, "wq": wq, "wk": wk, "wv": wv, "bq": bq, "bv": bv}
    side_by_side, biases = np.concatenate([wq, wk, wv], 1), np.concatenate([bq, zeros, bv])
    by_head = np.stack([w.reshape(width, heads, head) for w in (wq, wk, wv)], 2).reshape(width, -1)
    after = (bo.astype(np.float32) + bv.astype(np.float32) @ wo.astype(np.float32)).astype(np.float16)
    end = [node("MatMul", "a wo", "o1"), node("Add", "o1 bo", "o2"), node("Add", "o2 x", "out")]

    def attend(inputs: str) -> onnx.NodeProto:
        return node("MultiHeadAttention", inputs, "a", MICROSOFT, num_heads=heads)

    query = [node("MatMul", "x wq", "q0"), node("Add", "q0 bq", "q")]
    key, value = node("MatMul", "x wk", "k"), [node("MatMul", "x wv", "v0"), node("Add", "v0 bv", "v")]
    bare = [node("MatMul", "x wq", "q"), key, node("MatMul", "x wv", "v")]
    packed = [node("MatMul", "x w", "g"), node("Reshape", "g shape", "p")]
    forms = [
        Form(
            "one product with its bias, Split, MultiHeadAttention",
            [
                node("Reshape", "x rows", "x2"), node("Gemm", "x2 w b", "g"), node("Reshape", "g shape", "g3"),
                node("Split", "g3 parts", "q k v", axis=2), attend("q k v"), *end,
            ],
            {
                **shared, "w": side_by_side, "b": biases, "rows": np.array([-1, width]),
                "shape": np.array([batch, length, 3 * width]), "parts": np.array([width] * 3),
            },
        ),
        Form("three products, biases apart", [*query, key, *value, attend("q k v"), *end], apart),
        Form(
            "three products, the bias of values after attention",
            [*query, key, bare[2], attend("q k v"), *end],
            {**apart, "bo": after},
        ),
        Form("three products, biases in MultiHeadAttention", [*bare, attend("q k v b"), *end], {**apart, "b": biases}),
        Form(
            "packed, biases in MultiHeadAttention",
            [*packed, attend("p _ _ b"), *end],
            {**shared, "w": by_head, "b": biases, "shape": np.array([batch, length, heads, 3, head])},
        ),
        Form(
            "Attention",
            [node("Attention", "x w b", "a", MICROSOFT, num_heads=heads), *end],
            {**shared, "w": side_by_side, "b": biases},
        ),
    ]  # fmt: skip
    return Part("attention as in Whisper, 16 x 1500 x 384", drawn(rng, batch, length, width, scale=1.0), forms)


def swin(rng) -> Part:
    """Attention within 1024 windows of 49, with a bias of scores for each head."""
    batch, length, width, heads = 1024, 49, 96, 3
    head = width // heads
    constants = {
        "w": drawn(rng, width, 3 * width), "b": drawn(rng, 3 * width), "wo": drawn(rng, width, width),
        "bo": drawn(rng, width), "scores": drawn(rng, 1, heads, length, length, scale=0.5),
        "scale": np.array(head**-0.5, np.float16), "rows": np.array([-1, width]), "parts": np.array([width] * 3),
        "five": np.array([batch, length, 3, heads, head]), "three": np.array([batch, length, width]),
        "wide": np.array([batch, length, 3 * width]), "i0": np.array(0), "i1": np.array(1), "i2": np.array(2),
    }  # fmt: skip
    begin = [node("Reshape", "x rows", "x2"), node("Gemm", "x2 w b", "g")]
    end = [node("MatMul", "a wo", "o1"), node("Add", "o1 bo", "out")]
    exported = [
        node("Reshape", "g five", "g5"), node("Transpose", "g5", "t", perm=[2, 0, 3, 1, 4]),
        *(node("Gather", f"t i{k}", name, axis=0) for k, name in enumerate("qkv")),
        node("Mul", "q scale", "qs"), node("Transpose", "k", "kt", perm=[0, 1, 3, 2]), node("MatMul", "qs kt", "s"),
        node("Add", "s scores", "s1"), node("Softmax", "s1", "p", axis=-1), node("MatMul", "p v", "pv"),
        node("Transpose", "pv", "at", perm=[0, 2, 1, 3]), node("Reshape", "at three", "a"),
    ]  # fmt: skip
    fused = [
        node("Reshape", "g wide", "g3"), node("Split", "g3 parts", "q k v", axis=2),
        node("MultiHeadAttention", "q k v _ _ scores", "a", MICROSOFT, num_heads=heads),
    ]  # fmt: skip
    whole = [node("Attention", "x w b _ _ scores", "a", MICROSOFT, num_heads=heads)]
    forms = [
        Form("as exported", [*begin, *exported, *end], constants),
        Form("MultiHeadAttention with a bias of scores", [*begin, *fused, *end], constants),
        Form("Attention with a bias of scores", [*whole, *end], constants),
        *(
            Form(
                f"MultiHeadAttention, sdpa_kernel={kernel}", [*begin, *fused, *end], constants, {"sdpa_kernel": kernel}
            )
            for kernel in ("2", "8", "16")
        ),
        *_of_windows(rng, constants, heads),
    ]
    return Part("windows as in Swin, 1024 x 49 x 96", drawn(rng, batch, length, width, scale=1.0), forms)


def _of_windows(rng, given: dict[str, np.ndarray], heads: int) -> Iterator[Form]:
    """With products apart, biases by Sum and the scale in the weights; with positions before windows, so that
    FusedMatMul reads what it needs in steps; with windows of 56, the last 7 of which no score reaches."""
    batch, length, width = given["three"]
    head, wide = width // heads, 56
    w, b = (given[name].astype(np.float32).reshape(-1, 3, width) for name in "wb")
    scales = np.array([head**-0.5, 1, 1])[:, None]
    apart = {f"w{n}": part.astype(np.float16) for n, part in zip("qkv", (w * scales).transpose(1, 0, 2), strict=True)}
    apart |= {f"b{n}": part.astype(np.float16) for n, part in zip("qkv", (b * scales)[0], strict=True)}
    scores = given["scores"]
    constants = {
        **given, **apart, "four": np.array([batch, length, heads, head]),
        "first": np.array([length, batch, heads, head]),
        "back": np.array([length, batch, width]), "padded": np.array([*range(length), *[0] * (wide - length)]),
        "wider": np.pad(scores, ((0, 0), (0, 0), (0, wide - length), (0, wide - length)), constant_values=-6e4),
        "masked": np.pad(scores, ((0, 0), (0, 0), (0, 0), (0, wide - length)), constant_values=-6e4),
        "longer": np.array([wide, batch, heads, head]), "cut": np.arange(length),
        "packed": np.array([batch, length, heads, 3, head]),
    }  # fmt: skip
    constants["wide"] = np.array([batch, wide, 3 * width])
    products = [
        made for n in "qkv" for made in (node("MatMul", f"x w{n}", f"{n}0"), node("Sum", f"{n}0 b{n}", f"{n}1"))
    ]
    softmax = [node("Add", "s scores", "s1"), node("Softmax", "s1", "p", axis=-1)]
    end = [node("MatMul", "a wo", "o1"), node("Sum", "o1 bo", "out")]
    turned = [
        *(node("Reshape", f"{n}1 four", f"{n}2") for n in "qkv"),
        *(node("Transpose", f"{n}2", n, perm=[0, 2, 1, 3]) for n in "qv"),
        node("Transpose", "k2", "k", perm=[0, 2, 3, 1]), node("MatMul", "q k", "s"), *softmax,
        node("MatMul", "p v", "pv"), node("Transpose", "pv", "at", perm=[0, 2, 1, 3]), node("Reshape", "at three", "a"),
    ]  # fmt: skip
    stepped = [
        *(node("Reshape", f"{n}1 first", n) for n in "qkv"),
        node("FusedMatMul", "q k", "s", MICROSOFT, transBatchA=1, transBatchB=1, transB=1), *softmax,
        node("FusedMatMul", "p v", "pv", MICROSOFT, transBatchB=1), node("Transpose", "pv", "at", perm=[2, 0, 1, 3]),
        node("Reshape", "at back", "a"),
    ]  # fmt: skip
    in_eights = [
        node("Reshape", "x back", "xf"), node("Gather", "xf padded", "xw", axis=0),
        node("MatMul", "xf wq", "q0"), node("Sum", "q0 bq", "q1"), node("Reshape", "q1 first", "q"),
        *(node("MatMul", f"xw w{n}", f"{n}0") for n in "kv"), node("Sum", "v0 bv", "v1"),
        node("Reshape", "k0 longer", "k"), node("Reshape", "v1 longer", "v"),
        node("FusedMatMul", "q k", "s", MICROSOFT, transBatchA=1, transBatchB=1, transB=1),
        node("Add", "s masked", "s1"), node("Softmax", "s1", "p", axis=-1),
        node("FusedMatMul", "p v", "pv", MICROSOFT, transBatchB=1), node("Transpose", "pv", "at", perm=[2, 0, 1, 3]),
        node("Reshape", "at back", "a"),
    ]  # fmt: skip
    fused = [node("MultiHeadAttention", "q1 k1 v1 _ _ scores", "a", MICROSOFT, num_heads=heads, scale=1.0)]
    widened = [
        node("Gather", "x padded", "x5", axis=1), node("Reshape", "x5 rows", "x6"), node("MatMul", "x6 w", "g0"),
        node("Sum", "g0 b", "g"), node("Reshape", "g wide", "g3"), node("Split", "g3 parts", "q k v", axis=2),
        node("MultiHeadAttention", "q k v _ _ wider", "a1", MICROSOFT, num_heads=heads),
        node("Gather", "a1 cut", "a", axis=1), *end,
    ]  # fmt: skip
    by_head = given["w"].reshape(width, 3, heads, head).transpose(0, 2, 1, 3).reshape(width, -1)
    packed = [
        node("MatMul", "x w", "g"), node("Reshape", "g packed", "p5"),
        node("MultiHeadAttention", "p5 _ _ b _ scores", "a", MICROSOFT, num_heads=heads), *end,
    ]  # fmt: skip
    yield Form("three products, biases by Sum, Transposes", [*products, *turned, *end], constants)
    yield Form("three products, biases by Sum, MultiHeadAttention", [*products, *fused, *end], constants)
    yield Form("positions first, FusedMatMul (of other rows)", [*products, *stepped, *end], constants)
    yield Form("positions first, keys and values in eights (of other rows)", [*in_eights, *end], constants)
    yield Form("packed, biases in MultiHeadAttention", packed, {**constants, "w": by_head})
    for kernel in ("0", "2", "8"):
        named = {} if kernel == "0" else {"sdpa_kernel": kernel}
        yield Form(f"56 positions, MultiHeadAttention, sdpa_kernel={kernel}", widened, constants, named)
    yield Form("products and biases alone", [*products, node("Identity", "v1", "out")], constants)
    yield Form("scores, softmax and values alone, from x", [products[0], *_core()], constants)


def _core() -> list[onnx.NodeProto]:
    """Without projections: every operand is the same."""
    return [
        node("Reshape", "q0 first", "q"),
        node("FusedMatMul", "q q", "s", MICROSOFT, transBatchA=1, transBatchB=1, transB=1),
        node("Add", "s scores", "s1"), node("Softmax", "s1", "p", axis=-1),
        node("FusedMatMul", "p q", "out", MICROSOFT, transBatchB=1),
    ]  # fmt: skip


def normalization(rng, rows: int, width: int) -> Part:
    """With a bias in front of it, as behind ConvNeXt's convolutions, and without one."""
    constants = {
        "g": (1 + drawn(rng, width)).astype(np.float16), "b": drawn(rng, width), "c": drawn(rng, width),
        "zeros": np.zeros((1, rows, width), np.float16), "row": np.zeros((1, 1, width), np.float16),
        "apart": np.array([rows, 1, width]), "together": np.array([1, rows, width]),
    }  # fmt: skip
    constants["c3"] = constants["c"].reshape(1, 1, width)
    plain = node("LayerNormalization", "x g b", "out", axis=-1, epsilon=1e-5)
    before, after = node("Reshape", "x apart", "y"), node("Reshape", "n together", "out")
    biased = [node("Add", "x c", "s"), node("LayerNormalization", "s g b", "out", axis=-1, epsilon=1e-5)]

    def skip(inputs: str, out: str = "out", epsilon: float = 1e-5) -> onnx.NodeProto:
        return node("SkipLayerNormalization", inputs, out, MICROSOFT, epsilon=epsilon)

    forms = [
        Form("LayerNormalization", [plain], constants),
        Form("SkipLayerNormalization with zeros", [skip("x zeros g b")], constants),
        Form("SkipLayerNormalization with a row of zeros", [before, skip("y row g b", "n"), after], constants),
        Form("SkipLayerNormalization of x and x, 4 times epsilon", [skip("x x g b", epsilon=4e-5)], constants),
        Form("Add of a bias, LayerNormalization", biased, constants),
        Form("SkipLayerNormalization with the bias for a residual", [before, skip("y c3 g b", "n"), after], constants),
        Form("SkipLayerNormalization with zeros and the bias", [skip("x zeros g b c")], constants),
    ]
    return Part(f"a normalization, {rows} x {width}", drawn(rng, 1, rows, width, scale=1.0), forms)


def windows(rng) -> Part:
    """Images rolled by 3 pixels along both axes and cut into windows of 7."""
    batch, side, width, by = 16, 56, 96, 7
    count = side // by
    places = np.roll(np.arange(side * side).reshape(side, side), (-3, -3), (0, 1))
    places = places.reshape(count, by, count, by).transpose(0, 2, 1, 3).reshape(-1)
    constants = {
        "three": np.array([3]), "end": np.array([side]), "zero": np.array([0]), "rows": np.array([1]),
        "columns": np.array([2]), "six": np.array([batch, count, by, count, by, width]),
        "shape": np.array([batch * count * count, by * by, width]), "flat": np.array([batch, side * side, width]),
        "places": places,
    }  # fmt: skip
    rolled = [
        node("Slice", "x three end rows", "p1"), node("Slice", "x zero three rows", "p2"),
        node("Concat", "p1 p2", "r", axis=1), node("Slice", "r three end columns", "p3"),
        node("Slice", "r zero three columns", "p4"), node("Concat", "p3 p4", "r2", axis=2),
        node("Reshape", "r2 six", "v"), node("Transpose", "v", "t", perm=[0, 1, 3, 2, 4, 5]),
        node("Reshape", "t shape", "out"),
    ]  # fmt: skip
    gathered = [
        node("Reshape", "x flat", "v"),
        node("Gather", "v places", "t", axis=1),
        node("Reshape", "t shape", "out"),
    ]
    by_rows = [node("Reshape", "x all", "v"), node("Gather", "v every", "t", axis=0), node("Reshape", "t shape", "out")]
    cut = [node("Reshape", "x six", "v"), node("Transpose", "v", "t", perm=[0, 1, 3, 2, 4, 5]), rolled[-1]]
    first = [node("Reshape", "x six", "v"), node("Transpose", "v", "t", perm=[2, 4, 0, 1, 3, 5]), rolled[-1]]
    constants |= {
        "all": np.array([-1, width]),
        "every": (np.arange(batch)[:, None] * side * side + places).reshape(-1),
    }
    short = {**constants, "every": constants["every"].astype(np.int32)}
    forms = [
        Form("Slice, Concat, Transpose", rolled, constants),
        Form("one Gather", gathered, constants),
        Form("one Gather of rows", by_rows, constants),
        Form("one Gather of rows, indices of 32 bits", by_rows, short),
        Form("windows without the roll, Transpose", cut, constants),
        Form("windows without the roll, positions first, Transpose", first, constants),
    ]
    return Part("roll and windows, 16 x 56 x 56 x 96", drawn(rng, batch, side, side, width, scale=1.0), forms)


def vocabulary(rng) -> Part:
    """Scores for 50257 words, as GPT-2 has them: an odd number of columns, which no aligned read fits."""
    rows, width, words = 1024, 768, 50257
    w = drawn(rng, width, words)
    wide = np.pad(w, ((0, 0), (0, -words % 8)))
    constants = {
        "w": w, "wt": np.ascontiguousarray(w.T), "wide": wide, "zero": np.array([0]),
        "words": np.array([words]), "last": np.array([1]), "wide_t": np.ascontiguousarray(wide.T),
    }  # fmt: skip
    cut = node("Slice", "y zero words last", "out")
    forms = [
        Form("MatMul", [node("MatMul", "x w", "out")], constants),
        Form("Gemm with weights the other way round", [node("Gemm", "x wt", "out", transB=1)], constants),
        Form("MatMul with columns of zeros, and Slice", [node("MatMul", "x wide", "y"), cut], constants),
        Form(
            "Gemm the other way round, columns of zeros, Slice",
            [node("Gemm", "x wide_t", "y", transB=1), cut],
            constants,
        ),
        Form("MatMul with columns of zeros, not cut", [node("MatMul", "x wide", "out")], constants),
        Form("words first, Transpose", [node("Gemm", "wt x", "y", transB=1), node("Transpose", "y", "out")], constants),
        Form("words first, not turned", [node("Gemm", "wt x", "out", transB=1)], constants),
    ]
    return Part("a vocabulary, 1024 x 768 x 50257", drawn(rng, rows, width, scale=1.0), forms)


def biases(rng, rows: int, width: int, columns: int) -> Part:
    """A product with a bias, as in ConvNeXt and GPT-2."""
    constants = {"w": drawn(rng, width, columns), "b": drawn(rng, columns)}
    constants |= {"filters": np.ascontiguousarray(constants["w"].T).reshape(columns, 1, 1, width)}
    images = {"row": (1, rows, 1), "rectangle": (1, rows // 16, 16), "pixels": (rows, 1, 1)}
    constants |= {name: np.array([*sizes, width]) for name, sizes in images.items()}
    constants |= {"flat": np.array([rows, columns])}
    product = node("MatMul", "x w", "p")
    forms = [
        Form("Gemm", [node("Gemm", "x w b", "out")], constants),
        Form("MatMul, Add", [product, node("Add", "p b", "out")], constants),
        Form("MatMul, Sum", [product, node("Sum", "p b", "out")], constants),
        Form("MatMul, Add, Gelu", [product, node("Add", "p b", "s"), node("Gelu", "s", "out", MICROSOFT)], constants),
        Form("MatMul, BiasGelu", [product, node("BiasGelu", "p b", "out", MICROSOFT)], constants),
        Form("MatMul alone", [node("MatMul", "x w", "out")], constants),
        *(_as_convolution(name, constants) for name in images),
    ]
    return Part(f"a bias of a product, {rows} x {width} x {columns}", drawn(rng, rows, width, scale=1.0), forms)


def _as_convolution(layout: str, constants: dict[str, np.ndarray]) -> Form:
    """By channel at each place, its bias in the epilogue; the rows of the product are places of an image."""
    nodes = [
        node("Reshape", f"x {layout}", "y"),
        node("NhwcConv", "y filters b", "z", MICROSOFT, kernel_shape=[1, 1]),
        node("Reshape", "z flat", "out"),
    ]
    return Form(f"NhwcConv, {layout}", nodes, constants, {"fuse_conv_bias": "1"})


PARTS: tuple[Callable[[np.random.Generator], Part], ...] = (
    whisper,
    swin,
    partial(normalization, rows=24000, width=384),
    partial(normalization, rows=50176, width=96),
    partial(normalization, rows=3136, width=768),
    partial(normalization, rows=197, width=768),
    windows,
    vocabulary,
    partial(biases, rows=50176, width=96, columns=384),
    partial(biases, rows=50176, width=96, columns=96),
    partial(biases, rows=12544, width=768, columns=192),
    partial(biases, rows=3136, width=384, columns=384),
    partial(biases, rows=2048, width=768, columns=768),
    partial(biases, rows=1024, width=768, columns=3072),
    partial(layer, rows=3152),
    partial(layer, rows=197),
    attention,
    partial(biases, rows=128, width=768, columns=768),
    depthwise,
    partial(by_channel, channels=256, side=56),
    partial(by_channel, channels=512, side=14),
    partial(means, channels=32, side=112),
    partial(means, channels=144, side=56),
    partial(means, channels=480, side=14),
    partial(means, channels=1152, side=7),
    partial(means, channels=480, side=14, dtype=np.float16),
    partial(fire, squeezed=16, wide=64, after=16, side=55),
    partial(fire, squeezed=32, wide=128, after=32, side=27),
    partial(fire, squeezed=48, wide=192, after=48, side=13),
    partial(fire, squeezed=64, wide=256, after=64, side=13),
    partial(norms, rows=50176, width=96, together=4),
    partial(norms, rows=12544, width=192, together=2),
    partial(residuals, rows=50176, width=96),
    partial(residuals, rows=2048, width=768),
    partial(limits, rows=2048, width=512),
    partial(masked, batch=16, length=64, width=768),
    partial(masked, batch=1, length=64, width=768),
    partial(masked, batch=16, length=128, width=512),
    partial(activated, rows=2048, width=512, columns=2048),
    partial(pointwise, rows=50176, width=256),
    partial(pointwise, rows=12544, width=128),
    partial(pointwise, rows=50176, width=384, dtype=np.float32),
    movements,
)
