"""Candidates that are wrong in one small way: each must be caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from superopt.check import Request, check
from superopt.check.sizes import Shape
from superopt.ir.onnx import Model, parse
from tests.check.build import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT64,
    Array,
    compared,
    graph,
    model,
    node,
    normal,
    value,
)

pytestmark = pytest.mark.ort


def dense(weight: Array, bias: Array | None = None) -> Model:
    constants = {"w": weight} | ({"b": bias} if bias is not None else {})
    product = node("MatMul", ["x", "w"], ["m" if bias is not None else "y"])
    nodes = [product, node("Add", ["m", "b"], ["y"])] if bias is not None else [product]
    width = weight.shape[0]
    return model(nodes, [value("x", ["n", width])], [value("y", ["n", weight.shape[1]])], constants)


def one_weight() -> tuple[Model, Model]:
    weight = normal(512, 48)
    wrong = weight.copy()
    wrong[17, 5] *= 1.001
    return dense(weight), dense(wrong)


def one_bias() -> tuple[Model, Model]:
    weight, bias = normal(16, 8), normal(8, seed=1)
    wrong = bias.copy()
    wrong[3] = 0
    return dense(weight, bias), dense(weight, wrong)


def layer_norm(epsilon: float) -> Model:
    constants = {"s": np.ones(32, np.float32)}
    nodes = [node("LayerNormalization", ["x", "s"], ["y"], epsilon=epsilon)]
    return model(nodes, [value("x", [2, 32])], [value("y", [2, 32])], constants)


def epsilon() -> tuple[Model, Model]:
    return layer_norm(1e-5), layer_norm(1.1e-5)


def subtraction() -> tuple[Model, Model]:
    ports = [value("a", [3, 4]), value("b", [3, 4])], [value("y", [3, 4])]
    return model([node("Sub", ["a", "b"], ["y"])], *ports), model([node("Sub", ["b", "a"], ["y"])], *ports)


def padded(mode: str) -> Model:
    nodes = [node("Pad", ["x", "p"], ["y"], mode=mode)]
    constants = {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1])}
    return model(nodes, [value("x", ["n", 2, "h", "w"])], [value("y", ["n", 2, None, None])], constants)


def border() -> tuple[Model, Model]:
    """Reflecting and repeating the edge agree inside; one border line differs."""
    return padded("reflect"), padded("edge")


def unary(op: str, **attributes: Any) -> Model:
    return model([node(op, ["x"], ["y"], **attributes)], [value("x", ["n", 8])], [value("y", ["n", 8])])


def negatives() -> tuple[Model, Model]:
    return unary("LeakyRelu", alpha=0.01), unary("LeakyRelu", alpha=0.0101)


def ratio(guarded: bool) -> Model:
    """x / x, with or without an answer for 0."""
    one = np.ones(1, np.float32)
    nodes = [node("Equal", ["x", "zero"], ["none"]), node("Where", ["none", "one", "x"], ["d"])] if guarded else []
    nodes.append(node("Div", ["x", "d" if guarded else "x"], ["y"]))
    constants = {"zero": np.zeros(1, np.float32), "one": one} if guarded else {}
    return model(nodes, [value("x", [4, 4])], [value("y", [4, 4])], constants)


def zeros() -> tuple[Model, Model]:
    return ratio(guarded=True), ratio(guarded=False)


def flattened(batch: int) -> Model:
    nodes = [node("Reshape", ["x", "s"], ["y"])]
    constants = {"s": np.array([batch, 12])}
    return model(nodes, [value("x", ["n", 3, 4])], [value("y", ["n", 12])], constants)


def other_sizes() -> tuple[Model, Model]:
    return flattened(-1), flattened(1)


def embedding(table: Array) -> Model:
    nodes = [node("Gather", ["t", "ids"], ["y"])]
    return model(nodes, [value("ids", ["n", "s"], INT64)], [value("y", ["n", "s", table.shape[1]])], {"t": table})


def last_index() -> tuple[Model, Model]:
    table = normal(5000, 4)
    wrong = table.copy()
    wrong[-1] += 0.1
    return embedding(table), embedding(wrong)


def masked(heeded: bool) -> Model:
    """Scores of masked places pushed down before Softmax."""
    nodes = [
        node("Cast", ["attention_mask"], ["m"], to=FLOAT),
        node("Sub", ["one", "m"], ["off"]),
        node("Mul", ["off", "low"], ["bias"]),
        node("Add", ["x", "bias"], ["s"]),
        node("Softmax", ["s" if heeded else "x"], ["y"], axis=-1),
    ]
    inputs = [value("x", ["n", "s"]), value("attention_mask", ["n", "s"], INT64)]
    constants = {"one": np.array(1, np.float32), "low": np.array(-1e4, np.float32)}
    return model(nodes, inputs, [value("y", ["n", "s"])], constants)


def mask() -> tuple[Model, Model]:
    return masked(heeded=True), masked(heeded=False)


def output_order() -> tuple[Model, Model]:
    nodes = [node("Relu", ["x"], ["a"]), node("Neg", ["x"], ["b"])]
    a, b = value("a", [4]), value("b", [4])
    return model(nodes, [value("x", [4])], [a, b]), model(nodes, [value("x", [4])], [b, a])


def output_dtype() -> tuple[Model, Model]:
    as_double = model(
        [node("Relu", ["x"], ["r"]), node("Cast", ["r"], ["y"], to=DOUBLE)],
        [value("x", [4])],
        [value("y", [4], DOUBLE)],
    )
    return model([node("Relu", ["x"], ["y"])], [value("x", [4])], [value("y", [4])]), as_double


def not_a_number() -> tuple[Model, Model]:
    nodes = [node("IsNaN", ["x"], ["n"]), node("Where", ["n", "zero", "x"], ["y"])]
    ports = [value("x", ["n", 4])], [value("y", ["n", 4])]
    kept = model(nodes, *ports, {"zero": np.zeros(1, np.float32)})
    return kept, model([node("Identity", ["x"], ["y"])], *ports)


def clipped() -> tuple[Model, Model]:
    ports = [value("x", [4, 4])], [value("y", [4, 4])]
    constants = {"low": np.array(0, np.float32), "high": np.array(6, np.float32)}
    return model([node("Clip", ["x", "low", "high"], ["y"])], *ports, constants), model(
        [node("Relu", ["x"], ["y"])], *ports
    )


def small_scores(scale: float) -> Model:
    """Boxes of hundreds and scores of hundredths in one tensor, as detectors give them."""
    constants = {"big": np.array(300, np.float32), "small": np.array(scale, np.float32)}
    nodes = [
        node("Mul", ["x", "big"], ["boxes"]),
        node("Mul", ["x", "small"], ["scores"]),
        node("Concat", ["boxes", "scores"], ["y"], axis=1),
    ]
    return model(nodes, [value("x", [1, 4, 100])], [value("y", [1, 8, 100])], constants)


def hidden_by_scale() -> tuple[Model, Model]:
    return small_scores(1e-3), small_scores(1.01e-3)


def branch(other: float) -> Model:
    """Another constant in a branch that one value of an integer scalar selects."""
    nodes = [
        node("Equal", ["rate", "known"], ["is"]),
        node(
            "If",
            ["is"],
            ["y"],
            then_branch=graph([node("Mul", ["x", "two"], ["a"])], [], [value("a", ["n"])], {"two": np.float32(2)}),
            else_branch=graph([node("Mul", ["x", "o"], ["b"])], [], [value("b", ["n"])], {"o": np.float32(other)}),
        ),
    ]
    inputs = [value("x", ["n"]), value("rate", [], INT64)]
    return model(nodes, inputs, [value("y", ["n"])], {"known": np.array(16000)})


def other_branch() -> tuple[Model, Model]:
    return branch(3.0), branch(4.0)


def loop(step: float) -> Model:
    body = graph(
        [node("Identity", ["c"], ["c2"]), node("Add", ["s", "step"], ["s2"])],
        [value("i", [], INT64), value("c", [], BOOL), value("s", ["n"])],
        [value("c2", [], BOOL), value("s2", ["n"])],
        {"step": np.float32(step)},
        "body",
    )
    nodes = [node("Loop", ["times", "", "x"], ["y"], body=body)]
    return model(nodes, [value("times", [], INT64), value("x", ["n"])], [value("y", ["n"])])


def loop_body() -> tuple[Model, Model]:
    return loop(0.5), loop(0.6)


def tiny_results() -> tuple[Model, Model]:
    """A model all of whose results are around 1e-9."""
    return dense(normal(8, 8) * np.float32(1e-9)), dense(normal(8, 8) * np.float32(1.01e-9))


WRONG: list[Callable[[], tuple[Model, Model]]] = [
    one_weight, one_bias, epsilon, subtraction, border, negatives, zeros, other_sizes, last_index, mask, output_order,
    output_dtype, not_a_number, clipped, hidden_by_scale, other_branch, loop_body, tiny_results,
]  # fmt: skip


@pytest.mark.parametrize("make", WRONG, ids=lambda f: f.__name__)
def test_a_wrong_candidate_is_caught(make: Callable[[], tuple[Model, Model]]) -> None:
    original, candidate = make()
    report = compared(original, candidate)
    assert report.status == "different"
    assert report.reason
    assert compared(original, original).status == "equal"


def test_a_candidate_that_lost_an_input_is_different() -> None:
    original = model([node("Add", ["a", "b"], ["y"])], [value("a", [2]), value("b", [2])], [value("y", [2])])
    candidate = model([node("Add", ["a", "a"], ["y"])], [value("a", [2])], [value("y", [2])])
    assert compared(original, candidate).reason == "the candidate has no input b"


def test_a_candidate_that_does_not_open_is_different() -> None:
    original = unary("Relu")
    broken = replace(original, data=original.data.replace(b"Relu", b"Rxlu"))
    report = check(original, broken)
    assert report.status == "different"
    assert report.reason.startswith("the candidate: onnxruntime cannot open the model")


def test_a_candidate_that_refuses_a_size_is_different() -> None:
    report = compared(*other_sizes())
    assert "refuses what the original accepts" in report.reason


def test_a_replaced_initializer_must_count() -> None:
    """The candidate lists the same overridable initializer, and computes with a copy of its default."""

    def made(read: str) -> Model:
        w = numpy_helper.from_array(np.array(1.5, "float32"), "w")
        copy = numpy_helper.from_array(np.array(1.5, "float32"), "copy")
        g = helper.make_graph(
            [node("Mul", ["x", read], ["y"])], "g", [value("x", [4]), value("w", [])], [value("y", [4])], [w, copy]
        )
        opsets = [helper.make_opsetid("", 18)]
        return parse(helper.make_model(g, opset_imports=opsets, ir_version=9).SerializeToString())

    assert compared(made("w"), made("w")).status == "equal"
    report = compared(made("w"), made("copy"))
    assert report.status == "different"
    assert "initializers replaced: w" in report.reason


def test_the_users_sizes_are_used() -> None:
    sizes: dict[str, Shape] = {"x": (5, 3, 4)}
    report = check(*other_sizes(), Request(shapes=sizes))
    assert report.status == "different"
    assert "n=5" in report.reason
