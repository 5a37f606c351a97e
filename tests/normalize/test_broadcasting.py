# pyright: basic
"""What is expanded for an operator that broadcasts on its own need not be."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graphs import run
from tests.normalize.models import held, model

pytestmark = pytest.mark.ort

NAME = "broadcasts-on-its-own"
NORMALIZED = """
  n = ReduceL2<axes=[-1], keepdims=1>(x)
  c = Max(n, tiny)
  s = Shape(x)
  e = Expand(c, s)
  y = Div(x, e)
"""
TINY = "float tiny = {0.00001}"


@pytest.mark.parametrize("shape", ["2, 3, 4, 5", "b, 3, t, 5"])
def test_normalizing_by_a_column_reads_a_column(shape: str) -> None:
    outcome = held(model(f"g (float[{shape}] x) => (float[{shape}] y) <{TINY}> {{ {NORMALIZED} }}"))
    assert NAME in outcome.names
    assert outcome.ops == ["ReduceL2", "Max", "Div"]


@pytest.mark.parametrize(
    "line",
    ["Sub(x, e)", "Sub(e, x)", "Pow(e, x)", "Max(x, x, e)", "Where(t, e, x)", "Where(t, x, e)", "Sum(e, x)"],
)
def test_whichever_operand_it_is(line: str) -> None:
    text = "g (float[2,3,5] x, float[1,5] c, bool[5] t) => (float[2,3,5] y) <int64[3] s = {2,3,5}>"
    outcome = held(model(f"{text} {{ e = Expand(c, s) r = {line} y = Relu(r) }}"))
    assert NAME in outcome.names
    assert "Expand" not in outcome.ops


def test_of_two_that_are_expanded_one_stays() -> None:
    text = "g (float[3,1] x, float[1,5] c) => (float[3,5] y) <int64[2] s = {3,5}>"
    outcome = held(model(f"{text} {{ d = Expand(x, s) e = Expand(c, s) y = Mul(d, e) }}"))
    assert outcome.ops == ["Expand", "Mul"]


def test_what_others_read_stays() -> None:
    text = "g (float[3,5] x, float[1,5] c) => (float[3,5] y, float[3,5] e) <int64[2] s = {3,5}>"
    outcome = held(model(f"{text} {{ e = Expand(c, s) y = Mul(x, e) }}"))
    assert sorted(outcome.ops) == ["Expand", "Mul"]


@pytest.mark.parametrize(
    ("given", "result", "line"),
    [
        ("float[1,5] x", "float[3,5] y", "y = Mul(x, e)"),  # the other operand is narrower
        ("float[m,5] x", "float[k,5] y", "y = Mul(x, e)"),  # m may be 1
        ("float[3,5] x", "float[3,5] y", "y = PRelu(e, x)"),  # its result has the shape of the first
    ],
)
def test_where_the_result_has_its_shape_from_it_it_stays(given: str, result: str, line: str) -> None:
    text = f"g ({given}, float[1,5] c) => ({result}) <int64[2] s = {{3,5}}>"
    outcome = held(model(f"{text} {{ e = Expand(c, s) {line} }}"))
    assert NAME not in outcome.names
    assert "Expand" in outcome.ops


def test_a_symbol_that_is_1_at_run_time_is_no_matter() -> None:
    text = f"g (float[b, t, 5] x) => (float[b, t, 5] y) <{TINY}> {{ {NORMALIZED} }}"
    outcome = held(model(text))
    for shape in ((1, 1, 5), (2, 1, 5), (0, 3, 5)):
        x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        (before,), (now,) = run(outcome.before, {"x": x}), run(outcome.after, {"x": x})
        np.testing.assert_array_equal(now, before)
