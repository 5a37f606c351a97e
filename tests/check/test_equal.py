"""Candidates that compute the same in another way, and what is said when they cannot be compared."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from superopt.ir.onnx import Model
from tests.check.build import (
    BOOL,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INT32,
    INT64,
    STRING,
    UINT8,
    Array,
    compared,
    graph,
    model,
    node,
    normal,
    value,
)

pytestmark = pytest.mark.ort

DTYPES = {"float16": FLOAT16, "float32": FLOAT, "float64": DOUBLE}


def chain(weights: list[Array], dtype: int) -> Model:
    nodes = [
        node("MatMul", ["x" if i == 0 else f"h{i}", f"w{i}"], [f"h{i + 1}" if i + 1 < len(weights) else "y"])
        for i in range(len(weights))
    ]
    constants = {f"w{i}": w for i, w in enumerate(weights)}
    inputs, outputs = [value("x", ["n", 512], dtype)], [value("y", ["n", 512], dtype)]
    return model(nodes, inputs, outputs, constants)


@pytest.mark.parametrize("name", DTYPES)
def test_two_products_merged_into_one_are_equal(name: str) -> None:
    a, b = normal(512, 512) / 23, normal(512, 512, seed=1) / 23
    merged = (a.astype("float64") @ b.astype("float64")).astype(name)
    original = chain([a.astype(name), b.astype(name)], DTYPES[name])
    report = compared(original, chain([merged], DTYPES[name]))
    if name == "float64":
        merged = a.astype(name) @ b.astype(name)
        report = compared(original, chain([merged], DOUBLE))
    assert report.status == "equal", report.reason


@pytest.mark.parametrize("name", ["float32", "float16"])
def test_batch_normalization_folded_into_convolution_is_equal(name: str) -> None:
    dtype = DTYPES[name]
    w, scale, shift = normal(16, 8, 3, 3) / 8, np.abs(normal(16, seed=1)) + 0.5, normal(16, seed=2)
    mean, variance = normal(16, seed=3), np.abs(normal(16, seed=4)) + 0.5
    factor = scale.astype("float64") / np.sqrt(variance.astype("float64") + 1e-5)
    folded = (w * factor[:, None, None, None]).astype(name)
    bias = (shift - mean * factor).astype(name)
    inputs, outputs = [value("x", ["n", 8, "h", "w"], dtype)], [value("y", ["n", 16, "h", "w"], dtype)]
    parts = {"k": w, "s": scale, "b": shift, "m": mean, "v": variance}
    original = model(
        [
            node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]),
            node("BatchNormalization", ["c", "s", "b", "m", "v"], ["y"]),
        ],
        inputs,
        outputs,
        {n: a.astype(name) for n, a in parts.items()},
    )
    candidate = model(
        [node("Conv", ["x", "k", "b"], ["y"], pads=[1, 1, 1, 1])], inputs, outputs, {"k": folded, "b": bias}
    )
    report = compared(original, candidate)
    assert report.status == "equal", report.reason


def test_float32_computed_in_float16_is_held_to_float16() -> None:
    def made(weight: Array) -> Model:
        nodes = [
            node("Cast", ["x"], ["h"], to=FLOAT16),
            node("MatMul", ["h", "w"], ["p"]),
            node("Cast", ["p"], ["y"], to=FLOAT),
        ]
        return model(nodes, [value("x", [4, 64])], [value("y", [4, 64])], {"w": weight})

    weight = normal(64, 64, dtype="float16")
    report = compared(made(weight), made((weight.astype("float32") * np.float32(1.001)).astype("float16")))
    assert report.status == "equal"
    assert report.outputs[0].relative_tolerance == 1e-2
    wrong = weight.copy()
    wrong[0] = 0
    assert compared(made(weight), made(wrong)).status == "different"


def test_the_report_lists_input_sets_and_outputs() -> None:
    original = model([node("Relu", ["x"], ["y"])], [value("x", ["n", 3])], [value("y", ["n", 3])])
    report = compared(original, original)
    assert report.status == "equal"
    assert report.reason == ""
    assert report.runs == len(report.inputs) >= 10
    assert any(line.startswith("zeros") for line in report.inputs)
    assert {line.rpartition("n=")[2] for line in report.inputs} == {"0", "1", "3"}
    assert [(o.output, o.dtype, o.equal) for o in report.outputs] == [("y", "float32", True)]
    assert compared(original, original).model_dump() == report.model_dump()
    assert compared(original, original, seed=-1).status == "equal"


def waves(weights: list[Array], frequency: float) -> Model:
    """sin(frequency · Σ x·w): rounding in the sum comes out multiplied."""
    nodes = [node("MatMul", ["x", f"w{i}"], [f"p{i}"]) for i in range(len(weights))]
    nodes += [
        node("Sum", [f"p{i}" for i in range(len(weights))], ["p"]),
        node("Mul", ["p", "f"], ["a"]),
        node("Sin", ["a"], ["y"]),
    ]
    constants = {f"w{i}": w for i, w in enumerate(weights)} | {"f": np.array(frequency, "float32")}
    return model(nodes, [value("x", ["n", 64])], [value("y", ["n", 64])], constants)


def halves(weight: Array) -> list[Array]:
    low, high = weight.copy(), weight.copy()
    low[::2], high[1::2] = 0, 0
    return [low, high]


def test_amplified_rounding_widens_the_tolerance_and_says_so() -> None:
    weight = normal(64, 64)
    report = compared(waves([weight], 100.0), waves(halves(weight), 100.0))
    assert report.status == "equal", report.reason
    assert any("tolerance widened" in note for note in report.notes)
    assert 2e-5 < report.outputs[0].relative_tolerance < 1e-3
    wrong = weight.copy()
    wrong[3, 3] *= 1.01
    assert compared(waves([weight], 100.0), waves(halves(wrong), 100.0)).status == "different"


def test_a_chaotic_model_is_unchecked_rather_than_equal() -> None:
    weight = normal(64, 64)
    report = compared(waves([weight], 1e5), waves(halves(weight), 1e5))
    assert report.status == "unchecked"
    assert "unstable" in report.reason
    assert any("nothing follows from" in note for note in report.notes)


def test_a_tie_broken_the_other_way_is_different() -> None:
    """On zeros every place is largest, and no noise excuses another choice."""

    def made(last: int) -> Model:
        nodes = [node("ArgMax", ["x"], ["y"], axis=1, keepdims=0, select_last_index=last)]
        return model(nodes, [value("x", ["n", 4])], [value("y", ["n"], INT64)])

    assert compared(made(0), made(1)).status == "different"


def test_nan_equals_nan_and_is_said_to_prove_nothing() -> None:
    weight = np.full((4, 4), np.nan, np.float32)
    original = model([node("MatMul", ["x", "w"], ["y"])], [value("x", [2, 4])], [value("y", [2, 4])], {"w": weight})
    report = compared(original, original)
    assert report.status == "unchecked"
    assert "NaN" in report.reason


def test_one_output_of_nan_beside_a_sound_one_is_noted() -> None:
    nodes = [node("Mul", ["x", "w"], ["bad"]), node("Relu", ["x"], ["good"])]
    outputs = [value("bad", [4]), value("good", [4])]
    original = model(nodes, [value("x", [4])], outputs, {"w": np.full(4, np.nan, np.float32)})
    report = compared(original, original)
    assert report.status == "equal"
    assert any("output bad was NaN" in note for note in report.notes)


def test_a_constant_output_is_fine() -> None:
    nodes = [node("Mul", ["x", "zero"], ["z"]), node("Add", ["z", "c"], ["y"])]
    constants = {"zero": np.zeros(4, np.float32), "c": normal(4)}
    original = model(nodes, [value("x", [4])], [value("y", [4])], constants)
    candidate = model([node("Identity", ["c"], ["y"])], [value("x", [4])], [value("y", [4])], {"c": normal(4)})
    assert compared(original, candidate).status == "equal"


def test_a_model_that_onnxruntime_refuses_is_unchecked() -> None:
    original = model([node("NoSuchOperator", ["x"], ["y"])], [value("x", [4])], [value("y", [4])])
    report = compared(original, original)
    assert report.status == "unchecked"
    assert report.reason.startswith("the original: onnxruntime cannot open the model")
    assert report.runs == 0


def test_a_model_that_accepts_no_input_is_unchecked() -> None:
    """The reshape fails for whatever comes in."""
    nodes = [node("Reshape", ["x", "s"], ["y"])]
    original = model(nodes, [value("x", ["n", 2])], [value("y", [None, None])], {"s": np.array([0, 7])})
    report = compared(original, original)
    assert report.status == "unchecked"
    assert "input sets runs; the first was refused" in report.reason


def test_strings() -> None:
    def made(values: list[str]) -> Model:
        nodes = [
            node(
                "LabelEncoder", ["t"], ["y"], domain="ai.onnx.ml", keys_strings=["red", "green"], values_strings=values
            )
        ]
        return model(nodes, [value("t", ["n"], STRING)], [value("y", ["n"], STRING)])

    assert compared(made(["rot", "grün"]), made(["rot", "grün"])).status == "equal"
    assert compared(made(["rot", "grün"]), made(["rot", "gruen"])).status == "different"


def test_sequences() -> None:
    inner = helper.make_tensor_type_proto(FLOAT, ["n", 2])
    sequence = helper.make_sequence_type_proto(inner)

    def made(*order: str) -> Model:
        at = [node("SequenceAt", ["s", "one"], ["last"]), node("SequenceAt", ["s", "zero"], ["start"])]
        nodes = [*at, node("SequenceConstruct", list(order), ["q"])]
        info = helper.make_value_info
        constants = {"zero": np.array(0), "one": np.array(1)}
        return model(nodes, [info("s", sequence)], [info("q", sequence)], constants)

    assert compared(made("last", "start"), made("last", "start")).status == "equal"
    assert compared(made("last", "start"), made("start", "last")).status == "different"
    assert "elements against" in compared(made("last", "start"), made("last", "start", "start")).reason


def test_optionals_are_run_full_and_empty() -> None:
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))

    def made(otherwise: float) -> Model:
        full = graph([node("OptionalGetElement", ["o"], ["a"])], [], [value("a", [2])])
        empty = graph([node("Identity", ["c"], ["b"])], [], [value("b", [2])], {"c": np.full(2, otherwise, "float32")})
        nodes = [
            node("OptionalHasElement", ["o"], ["has"]),
            node("If", ["has"], ["y"], then_branch=full, else_branch=empty),
        ]
        return model(nodes, [helper.make_value_info("o", optional)], [value("y", [2])])

    assert compared(made(1.0), made(1.0)).status == "equal"
    report = compared(made(1.0), made(2.0))
    assert report.status == "different"
    assert "optional inputs empty" in report.reason


def test_integers_and_booleans_are_exact() -> None:
    def made(step: int) -> Model:
        nodes = [node("Add", ["a", "s"], ["y"]), node("Greater", ["y", "s"], ["b"])]
        outputs = [value("y", [5], INT32), value("b", [5], BOOL)]
        return model(nodes, [value("a", [5], INT32)], outputs, {"s": np.array(step, "int32")})

    assert compared(made(1), made(1)).status == "equal"
    assert compared(made(1), made(2)).status == "different"


def quantized(scale: float, zero: int = 128) -> Model:
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["y"])]
    constants = {"s": np.float32(scale), "z": np.array(zero, "uint8")}
    return model(nodes, [value("x", [64, 64])], [value("y", [64, 64], UINT8)], constants)


def test_codes_may_lie_one_step_off_where_that_is_rare() -> None:
    scale = np.float32(0.02)
    report = compared(quantized(float(scale)), quantized(float(np.nextafter(scale, np.float32(1)))))
    assert report.status == "equal"
    assert report.outputs[0].absolute_tolerance == 1
    report = compared(quantized(0.02), quantized(0.02, zero=129))
    assert report.status == "different"
    assert "one step off" in report.reason
