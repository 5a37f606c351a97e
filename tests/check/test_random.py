"""Models that draw at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from superopt.check.traits import traits_of_outputs
from superopt.ir.onnx import Model
from tests.check.build import BOOL, FLOAT, FLOAT16, UINT8, compared, graph, model, node, normal, value


def noisy(*nodes: tuple[str, list[str], str], opset: int = 18) -> Model:
    made = [node(op, inputs, [output]) for op, inputs, output in nodes]
    return model(made, [value("x", ["n", 64])], [value("y", ["n", 64])], opset=opset)


DIFFERENCE = noisy(("RandomNormalLike", ["x"], "a"), ("RandomNormalLike", ["x"], "b"), ("Sub", ["a", "b"], "y"))


@pytest.mark.ort
def test_a_random_model_is_unchecked_and_says_why() -> None:
    report = compared(DIFFERENCE, DIFFERENCE)
    assert report.status == "unchecked"
    assert report.reason == "every output is random: no value was compared"
    assert report.runs > 0


@pytest.mark.ort
def test_random_nodes_merged_into_one_are_different() -> None:
    merged = noisy(("RandomNormalLike", ["x"], "a"), ("Sub", ["a", "a"], "y"))
    report = compared(DIFFERENCE, merged)
    assert report.status == "different"
    assert "standard deviation" in report.reason


@pytest.mark.ort
def test_another_distribution_is_different() -> None:
    report = compared(noisy(("RandomNormalLike", ["x"], "y")), noisy(("RandomUniformLike", ["x"], "y")))
    assert report.status == "different"


def beside(slope: float) -> Model:
    nodes = [node("RandomUniformLike", ["x"], ["r"], seed=7.0), node("LeakyRelu", ["x"], ["y"], alpha=slope)]
    return model(nodes, [value("x", ["n", 8])], [value("r", ["n", 8]), value("y", ["n", 8])])


@pytest.mark.ort
def test_outputs_beside_a_random_one_are_compared() -> None:
    report = compared(beside(0.1), beside(0.1))
    assert report.status == "equal"
    assert [o.output for o in report.outputs] == ["y"]
    assert any("output r is random" in note for note in report.notes)
    assert compared(beside(0.1), beside(0.2)).status == "different"


@pytest.mark.ort
def test_dropout_in_training_is_random_and_in_inference_is_not() -> None:
    def made(training: bool) -> Model:
        nodes = [node("Dropout", ["x", "r", "t"], ["y"])]
        constants = {"r": np.float32(0.5), "t": np.array(training)}
        return model(nodes, [value("x", [4, 64])], [value("y", [4, 64])], constants)

    assert compared(made(True), made(True)).status == "unchecked"
    assert compared(made(False), made(False)).status == "equal"


@pytest.mark.unit
def test_randomness_is_seen_inside_bodies() -> None:
    drawn = graph([node("RandomNormalLike", ["x"], ["a"])], [], [value("a", [4])])
    kept = graph([node("Identity", ["x"], ["b"])], [], [value("b", [4])])
    made = model(
        [node("If", ["c"], ["y"], then_branch=drawn, else_branch=kept)],
        [value("c", [], BOOL), value("x", [4])],
        [value("y", [4])],
    )
    assert traits_of_outputs(made.graph)[0].random


@pytest.mark.unit
def test_weights_kept_in_float16_do_not_make_the_result_coarse() -> None:
    def made(*nodes: Any) -> Model:
        return model(nodes, [value("x", [2, 4])], [value("y", [2, 4])], {"w": normal(4, 4, dtype="float16")})

    stored = made(node("Cast", ["w"], ["v"], to=FLOAT), node("MatMul", ["x", "v"], ["y"]))
    computed = made(
        node("Cast", ["x"], ["h"], to=FLOAT16),
        node("MatMul", ["h", "w"], ["p"]),
        node("Cast", ["p"], ["y"], to=FLOAT),
    )
    assert traits_of_outputs(stored.graph)[0].coarsest == "float32"
    assert traits_of_outputs(computed.graph)[0].coarsest == "float16"


@pytest.mark.unit
def test_codes_are_told_from_other_bytes() -> None:
    constants = {"s": np.float32(0.1), "z": np.array(0, "uint8")}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("Transpose", ["q"], ["y"])]
    coded = model(nodes, [value("x", [2, 3])], [value("y", [3, 2], UINT8)], constants)
    assert traits_of_outputs(coded.graph)[0].code
    plain = model([node("Cast", ["x"], ["y"], to=UINT8)], [value("x", [2])], [value("y", [2], UINT8)])
    assert not traits_of_outputs(plain.graph)[0].code
