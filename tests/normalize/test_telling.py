# pyright: basic
"""Targets that a run would compute, told by types: constants where they are numbers or stay in place."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.graphs import run
from tests.normalize.models import held, model

pytestmark = pytest.mark.ort

SIZES = """
    s = Shape(x)
    b = Gather<axis=0>(s, zero)
    t = Gather<axis=0>(s, one)
    b1 = Unsqueeze(b, first)
    t1 = Unsqueeze(t, first)
"""
CONSTANTS = "int64 zero = {0}, int64 one = {1}, int64[1] first = {0}"


def view(target: str, further: str = "", result: str = "float[n, m, k, l] y", given: str = "float[b, t, 6] x") -> str:
    return f"g ({given}) => ({result}) <{CONSTANTS}{further}> {{ {SIZES} {target} r = Reshape(x, w) y = Relu(r) }}"


def target_of(data: bytes) -> list[int]:
    graph = onnx.load_from_string(data).graph
    (reshape,) = [node for node in graph.node if node.op_type == "Reshape"]
    return next(numpy_helper.to_array(t).tolist() for t in graph.initializer if t.name == reshape.input[1])


HEADS = view("w = Concat<axis=0>(b1, t1, rest, two)", ", int64[1] rest = {-1}, int64[1] two = {2}")


def test_what_is_taken_apart_and_put_together_is_a_constant() -> None:
    outcome = held(model(HEADS))
    assert "reshape-told-by-types" in outcome.names
    assert outcome.ops == ["Reshape", "Relu"]
    assert target_of(outcome.after) == [0, 0, 3, 2]


def test_a_size_that_moves_is_worked_out() -> None:
    outcome = held(
        model(view("w = Concat<axis=0>(t1, six)", ", int64[1] six = {6}", "float[n, k] y", "float[1, t, 6] x"))
    )
    assert outcome.ops == ["Reshape", "Relu"]
    assert target_of(outcome.after) == [-1, 6]


def test_beside_a_size_that_is_copied_nothing_is_worked_out() -> None:
    """Of a tensor without elements, onnxruntime would refuse it."""
    turned = view("w = Concat<axis=0>(b1, six, t1)", ", int64[1] six = {6}", "float[n, k, l] y")
    outcome = held(model(turned))
    assert outcome.ops.count("Concat") == 1
    empty = {"x": np.zeros((2, 0, 6), np.float32)}
    (answer,) = run(outcome.after, empty)
    assert answer.shape == (2, 6, 0)


def test_a_target_that_says_what_is_there_already_changes_nothing() -> None:
    outcome = held(model(view("w = Concat<axis=0>(b1, t1, six)", ", int64[1] six = {6}", "float[n, k, l] y")))
    assert outcome.ops == ["Relu"]


def test_a_size_that_no_type_tells_stays_computed() -> None:
    halved = view("h = Div(t1, two) w = Concat<axis=0>(b1, h, twelve)", ", int64[1] two = {2}, int64[1] twelve = {12}",
                  "float[n, k, l] y")  # fmt: skip
    outcome = held(model(halved), {"x": np.ones((2, 4, 6), np.float32)})
    assert "Div" in outcome.ops


def test_zeros_that_mean_zero_are_none_any_more() -> None:
    outcome = held(model(HEADS.replace("Reshape(x, w)", "Reshape<allowzero=1>(x, w)")))
    (reshape,) = [node for node in outcome.proto.graph.node if node.op_type == "Reshape"]
    assert not reshape.attribute
    assert target_of(outcome.after) == [0, 0, 3, 2]


def test_an_expand_to_the_same_sizes_is_gone() -> None:
    graph = f"""g (float[b, t] x) => (float[n, m] y) <{CONSTANTS}> {{
        {SIZES}
        w = Concat<axis=0>(b1, t1)
        a = Relu(x)
        e = Expand(a, w)
        y = Neg(e)
    }}"""
    outcome = held(model(graph))
    assert outcome.ops == ["Relu", "Neg"]
    other = held(
        model(graph.replace("w = Concat<axis=0>(b1, t1)", "w = Concat<axis=0>(t1, b1)")),
        {"x": np.ones((2, 2), np.float32)},
    )
    assert "Expand" in other.ops
