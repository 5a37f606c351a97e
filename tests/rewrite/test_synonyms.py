# pyright: basic
"""A rule about Add is used where a Sum of two stands, and not where there are more."""

from __future__ import annotations

import pytest

from superopt.rewrite.rewriter import Rules
from superopt.rewrite.text import parse_rules
from superopt.verify.prove import prove
from tests.rewrite.small import every_way, model, numbers
from tests.rewrite.taking import REGISTRY

SUM_OF_TWO = """rule sum-of-two
  given   x: [...a]  y: [...a]
  z = Sum(x, y)
  =>
  z = Add(x, y)
"""
THROUGH = """rule through
  given   x: [...b, m, k]  z: [k]  w: [k, n]
  y = MatMul(Add(x, z), w)
  =>
  y = Add(MatMul(x, w), MatMul(z, w))
"""
TWICE = """rule twice
  given   x: [n, m]  y: [n, m]
  s = Add(x, y)
  t = Mul(x, y)
  =>
  t = Mul(y, x)
  s = Sum(y, x)
"""
MODEL = """
g (float[2,5,4] x) => (float[2,5,3] y)
{
  s = Sum(x, z)
  y = MatMul(s, w)
}"""


def ways(text: str, rule: str, **weights):
    feeds = {"x": numbers(2, 5, 4)}
    return every_way(model(text, **weights), feeds, Rules(parse_rules(rule), REGISTRY))


@pytest.mark.smt
def test_they_mean_the_same() -> None:
    assert prove(parse_rules(SUM_OF_TWO)[0], REGISTRY).status == "proved"
    broadcast = SUM_OF_TWO.replace("x: [...a]  y: [...a]", "x: [...a, n, k]  y: [k]")
    assert prove(parse_rules(broadcast)[0], REGISTRY).status == "proved"


@pytest.mark.ort
@pytest.mark.parametrize("order", ["x, z", "z, x"])
def test_a_sum_of_two_is_found_as_an_add(order: str) -> None:
    assert ways(MODEL.replace("x, z)", f"{order})"), THROUGH, z=numbers(4), w=numbers(4, 3))


@pytest.mark.ort
@pytest.mark.parametrize("operands", ["x", "x, z, z"])
def test_a_sum_of_one_or_three_is_not(operands: str) -> None:
    assert not ways(MODEL.replace("x, z)", f"{operands})"), THROUGH, z=numbers(4), w=numbers(4, 3))


@pytest.mark.ort
def test_an_add_is_not_found_as_a_sum() -> None:
    only_sums = THROUGH.replace("MatMul(Add(x, z), w)", "MatMul(Sum(x, z), w)")
    assert not ways(MODEL.replace("Sum", "Add"), only_sums, z=numbers(4), w=numbers(4, 3))
    assert ways(MODEL, only_sums, z=numbers(4), w=numbers(4, 3))


@pytest.mark.ort
@pytest.mark.parametrize("op", ["Add", "Sum"])
def test_beside_other_results_too(op: str) -> None:
    text = """
g (float[5,4] x, float[5,4] z) => (float[5,4] s, float[5,4] t)
{
  s = ADDED(x, z)
  t = Mul(x, z)
}""".replace("ADDED", op)
    feeds = {"x": numbers(5, 4), "z": numbers(5, 4) + 1}
    assert every_way(model(text), feeds, Rules(parse_rules(TWICE), REGISTRY))
