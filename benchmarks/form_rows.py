# pyright: basic
"""Forms of what many short rows need: to be normalized, to be moved between windows and images, and to have a bias and
a residual added behind a product."""

from __future__ import annotations

import numpy as np
import onnx

from benchmarks.form import MICROSOFT, Form, Part, drawn, node

LIMITS = {"most": 65504, "less": 64504, "_most": -65504, "_less": -64504}


def norms(rng, rows: int, width: int, together: int) -> Part:
    """Of sums, which are wanted, too; and of `together` rows side by side, each as a group or a branch of its own."""
    constants = {
        "g": (1 + drawn(rng, width)).astype(np.float16), "b": drawn(rng, width), "c": drawn(rng, width),
        "three": np.array([1, rows, width]), "two": np.array([rows, width]),
        "groups": np.array([rows // together, 1, 1, together * width]),
        "branches": np.array([rows // together, together, width]),
    }  # fmt: skip
    constants |= {f"{name}s": np.tile(constants[name], together).astype(np.float32) for name in "gb"}
    constants["cs"] = np.tile(constants["c"], together)

    def fused(op: str, inputs: str, outputs: str = "out", **attributes) -> onnx.NodeProto:
        return node(op, inputs, outputs, MICROSOFT, epsilon=1e-5, **attributes)

    doubled = node("Add", "x x", "s")
    grouped, back = node("Reshape", "x groups", "y"), node("Reshape", "n three", "out")
    forms = [
        Form("SkipLayerNormalization, sum and bias", [fused("SkipLayerNormalization", "x x g b c")], constants),
        Form(
            "the same, with the sum as a result",
            [fused("SkipLayerNormalization", "x x g b c", "n _ _ s"), node("Sub", "n s", "out")],
            constants,
        ),
        Form(
            "GroupNorm of rows side by side, without sum",
            [grouped, fused("GroupNorm", "y gs bs", "n", groups=together, activation=0, channels_last=1), back],
            constants,
        ),
        Form(
            "SkipGroupNorm of rows side by side, sum and bias",
            [grouped, fused("SkipGroupNorm", "y gs bs y cs", "n", groups=together, activation=0, channels_last=1),
             back],
            constants,
        ),
        Form("SkipSimplifiedLayerNormalization", [fused("SkipSimplifiedLayerNormalization", "x x g")], constants),
        Form(
            "Add, BranchwiseRMSNorm of branches",
            [doubled, node("Reshape", "s branches", "y"), fused("BranchwiseRMSNorm", "y g", "n"), back],
            constants,
        ),
        Form(
            "BranchwiseRMSNorm of branches alone",
            [node("Reshape", "x branches", "y"), fused("BranchwiseRMSNorm", "y g", "n"), back],
            constants,
        ),
    ]  # fmt: skip
    x = drawn(rng, 1, rows, width, scale=1.0)
    return Part(f"norms of sums, {rows} x {width}", x, forms)


def limits(rng, rows: int, width: int) -> Part:
    """What T5 does behind each sum in 16 bits: limits that depend on whether anything is infinite, and a normalization
    by squares."""
    half, single = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
    constants = {
        "zero": np.array(0, np.float32), **{k: np.array(v, np.float16) for k, v in LIMITS.items()},
        "g": (1 + drawn(rng, width)).astype(np.float16), "two": np.array([rows, width]),
        "none": np.array(0, np.float16), "one_none": np.zeros((1, 1), np.float16), "scalar": np.zeros(0, np.int64),
        "ones": np.ones((1, rows), np.float16), "ones_": np.ones((width, 1), np.float16),
        "row": np.array([1, rows * width]), "last": np.array([1]),
        "grouped": np.array([rows, 1, width]),
    }  # fmt: skip
    infinite = [node("Cast", "x", "f", to=single), node("IsInf", "f", "i")]
    counted = [
        node("Cast", "i", "c", to=single),
        node("ReduceSum", "c", "n", keepdims=0),
        node("Greater", "n zero", "a"),
    ]
    largest = [node("Abs", "x", "p"), node("ReduceMax", "p", "m", keepdims=0), node("Greater", "m most", "a")]
    shrunk = node("Shrink", "x", "s", lambd=65504.0)  # what is finite is 0 then, and NaN is, too

    def added(op: str) -> list[onnx.NodeProto]:
        return [shrunk, node(op, "s", "n", keepdims=0), node("Equal", "n none", "a")]

    in_products = [
        shrunk,
        node("MatMul", "ones s", "p"),
        node("MatMul", "p ones_", "q"),
        node("Equal", "q one_none", "e"),
        node("Reshape", "e scalar", "a"),
    ]
    asked = [node("IsAllFinite", "x", "a", MICROSOFT, isinf_only=1)]
    if_any = [node("Where", "a less most", "h"), node("Where", "a _less _most", "l")]
    if_none = [node("Where", "a most less", "h"), node("Where", "a _most _less", "l")]
    clip, between = node("Clip", "x l h", "out"), [node("Min", "x h", "u"), node("Max", "u l", "out")]

    def normalized(op: str, domain: str = "", **attributes) -> list[onnx.NodeProto]:
        return [node(op, "x g", "out", domain, epsilon=1e-6, **attributes)]

    forms = [
        Form("IsInf counted in floats, Clip", [*infinite, *counted, *if_any, clip], constants),
        *(
            Form(f"Shrink, {op}, Clip", [*added(op), *if_none, clip], constants)
            for op in ("ReduceSum", "ReduceL1", "ReduceL2", "ReduceMean")
        ),
        Form(
            "Shrink, ReduceSum of one row, Clip",
            [shrunk, node("Reshape", "s row", "r"), node("ReduceSum", "r last", "n"), node("Equal", "n none", "e"),
             node("Reshape", "e scalar", "a"), *if_none, clip],
            constants,
        ),
        Form(
            "Shrink, ReduceSum of rows and of their sums, Clip",
            [shrunk, node("ReduceSum", "s last", "r"), node("ReduceSum", "r", "n", keepdims=0),
             node("Equal", "n none", "a"), *if_none, clip],
            constants,
        ),
        Form(
            "Shrink, ReduceSum, Clip between constants or not",
            [*added("ReduceSum"), node("Clip", "x _less less", "c"), node("Where", "a x c", "out")],
            constants,
        ),
        Form("Shrink, products with ones, Clip", [*in_products, *if_none, clip], constants),
        Form("Shrink alone", [node("Shrink", "x", "out", lambd=65504.0)], constants),
        Form("Shrink, ReduceSum", [shrunk, node("ReduceSum", "s", "out", keepdims=0)], constants),
        Form("the largest, Clip", [*largest, *if_any, clip], constants),
        Form("IsAllFinite, Clip", [*asked, *if_none, clip], constants),
        Form("IsAllFinite, Min, Max", [*asked, *if_none, *between], constants),
        Form("Clip between constants", [node("Clip", "x _most most", "out")], constants),
        Form("Relu alone", [node("Relu", "x", "out")], constants),
        Form("SimplifiedLayerNormalization", normalized("SimplifiedLayerNormalization", axis=-1), constants),
        Form(
            "BranchwiseRMSNorm of one branch",
            [node("Reshape", "x grouped", "y"), node("BranchwiseRMSNorm", "y g", "n", MICROSOFT, epsilon=1e-6),
             node("Reshape", "n two", "out")],
            constants,
        ),
        Form(
            "SkipSimplifiedLayerNormalization of zeros",
            [node("SkipSimplifiedLayerNormalization", "x zeros g", "out", MICROSOFT, epsilon=1e-6)],
            {**constants, "zeros": np.zeros((rows, width), np.float16)},
        ),
        Form("Cast to float32 and back", [node("Cast", "x", "f", to=single), node("Cast", "f", "out", to=half)], {}),
    ]  # fmt: skip
    return Part(f"limits, {rows} x {width}", drawn(rng, rows, width, scale=1.0), forms)


def pointwise(rng, rows: int, width: int, dtype: type = np.float16) -> Part:
    """Kernels that read each element once: which of them are as fast as memory is?"""
    constants = {name: np.array(value, dtype) for name, value in (("zero", 0), ("one", 1), ("six", 6))}
    constants["zeros"] = np.zeros(width, dtype)
    added = node("Add", "x x", "s")
    forms = [
        Form("Relu", [node("Relu", "x", "out")], constants),
        Form("Max with a zero", [node("Max", "x zero", "out")], constants),
        Form("Max with a row of zeros", [node("Max", "x zeros", "out")], constants),
        Form("LeakyRelu of nothing", [node("LeakyRelu", "x", "out", alpha=0.0)], constants),
        Form("PRelu of nothing", [node("PRelu", "x zero", "out")], constants),
        Form("Clip", [node("Clip", "x zero", "out")], constants),
        Form("HardSwish", [node("HardSwish", "x", "out")], constants),
        Form("Clip between zero and six", [node("Clip", "x zero six", "out")], constants),
        Form("HardSigmoid", [node("HardSigmoid", "x", "out", alpha=1 / 6, beta=0.0)], constants),
        Form("Max with a zero, Min with a six", [node("Max", "x zero", "m"), node("Min", "m six", "out")], constants),
        Form("Sigmoid, Mul", [node("Sigmoid", "x", "h"), node("Mul", "x h", "out")], constants),
        Form("ScaledSiLU", [node("ScaledSiLU", "x", "out", MICROSOFT, alpha=1.0)], constants),
        Form("HardSigmoid, Mul", [node("HardSigmoid", "x", "h", alpha=1 / 6), node("Mul", "x h", "out")], constants),
        Form("Add", [node("Add", "x x", "out")], constants),
        Form("Sum of three", [node("Sum", "x x x", "out")], constants),
        Form("Mul with a one", [node("Mul", "x one", "out")], constants),
        Form("QuickGelu", [node("QuickGelu", "x", "out", MICROSOFT, alpha=1.0)], constants),
        Form("FastGelu", [node("FastGelu", "x", "out", MICROSOFT)], constants),
        Form("Gelu", [node("Gelu", "x", "out", MICROSOFT)], constants),
        Form("FastGelu with a bias", [node("FastGelu", "x zeros", "out", MICROSOFT)], constants),
        Form("BiasGelu", [node("BiasGelu", "x zeros", "out", MICROSOFT)], constants),
        Form("Add, Relu", [added, node("Relu", "s", "out")], constants),
        Form("Add, Max with a zero", [added, node("Max", "s zero", "out")], constants),
    ]
    x = rng.standard_normal((rows, width)).astype(dtype)
    return Part(f"one element each, {rows} x {width} {np.dtype(dtype)}", x, forms)


def activated(rng, rows: int, width: int, columns: int) -> Part:
    """A product and its activation."""
    constants = {"w": drawn(rng, width, columns)}
    half, product = onnx.TensorProto.FLOAT16, node("MatMul", "x w", "p")
    forms = [
        Form("MatMul, Relu", [product, node("Relu", "p", "out")], constants),
        Form("MatMul, FastGelu", [product, node("FastGelu", "p", "out", MICROSOFT)], constants),
        Form("MatMul alone", [node("MatMul", "x w", "out")], constants),
    ]
    for activation in ("NONE", "RELU", "GELU"):
        fused = node("GemmFloat8", "x w", "out", MICROSOFT, dtype=half, activation=activation)
        forms.append(Form(f"GemmFloat8 of float16, {activation}", [fused], constants))
    return Part(
        f"an activation behind a product, {rows} x {width} x {columns}", drawn(rng, rows, width, scale=1.0), forms
    )


def residuals(rng, rows: int, width: int) -> Part:
    """Behind a product: a bias, and the rows that it was computed from."""
    constants = {"w": drawn(rng, width, width), "b": drawn(rng, width), "three": np.array([1, rows, width])}
    constants["two"] = np.array([rows, width])
    product = node("MatMul", "x w", "p")
    widened = [node("Reshape", "p three", "p3"), node("Reshape", "x three", "x3")]
    half = onnx.TensorProto.FLOAT16
    forms = [
        Form("MatMul, Sum, Add", [product, node("Sum", "p b", "s"), node("Add", "s x", "out")], constants),
        Form(
            "MatMul, BiasAdd",
            [product, *widened, node("BiasAdd", "p3 b x3", "s3", MICROSOFT), node("Reshape", "s3 two", "out")],
            constants,
        ),
        Form("MatMul alone", [node("MatMul", "x w", "out")], constants),
        Form("Gemm with the residual for a bias", [node("Gemm", "x w x", "out")], constants),
        Form(
            "GemmFloat8 of float16 with the residual",
            [node("GemmFloat8", "x w x", "out", MICROSOFT, dtype=half, beta=1.0)],
            constants,
        ),
        Form("GemmFloat8 of float16 alone", [node("GemmFloat8", "x w", "out", MICROSOFT, dtype=half)], constants),
    ]
    return Part(f"a product, its bias and a residual, {rows} x {width}", drawn(rng, rows, width, scale=1.0), forms)


def movements(rng) -> Part:
    """What attention within windows of 7 answers, by head, put back into an image: heads to channels, windows to
    places."""
    batch, count, by, heads, head = 16, 8, 7, 3, 32
    shape = (batch * count * count, heads, by * by, head)
    constants = {
        "rows": np.array([shape[0], shape[2], heads * head]),
        "six": np.array([batch, count, count, by, by, heads * head]),
        "seven": np.array([batch, count, count, heads, by, by, head]),
        "image": np.array([batch, count * by, count * by, heads * head]),
    }
    heads_last = node("Transpose", "x", "t", perm=[0, 2, 1, 3])
    put_back = node("Transpose", "v", "u", perm=[0, 1, 3, 2, 4, 5])
    end = node("Reshape", "u image", "out")
    forms = [
        Form(
            "heads, then windows",
            [heads_last, node("Reshape", "t rows", "r"), node("Reshape", "r six", "v"), put_back, end],
            constants,
        ),
        Form(
            "both at once",
            [node("Reshape", "x seven", "v"), node("Transpose", "v", "u", perm=[0, 1, 4, 2, 5, 3, 6]), end],
            constants,
        ),
        Form("heads alone", [heads_last, node("Reshape", "t image", "out")], constants),
    ]
    return Part("attention put back into an image", drawn(rng, *shape, scale=1.0), forms)
