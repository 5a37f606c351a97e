"""A sum over at least one e^x is positive, and may be multiplied with: shares of a whole add up to 1."""

from __future__ import annotations

import pytest

import specs
from superopt.rewrite.text import parse_rules
from superopt.verify.prove import prove

pytestmark = pytest.mark.smt

REGISTRY = specs.load()
SHIFTED = """rule test
  given   p: [...c, m, n]  v: [...c, n, d]  b: [d]
  y = MatMul(Softmax(p, axis=-1), Add(v, b))
  =>
  y = Add(MatMul(Softmax(p, axis=-1), v), {})
"""


def test_shares_add_up_to_one() -> None:
    assert prove(parse_rules(SHIFTED.format("b"))[0], REGISTRY).status == "proved"


@pytest.mark.parametrize("wrong", ["Add(b, b)", "Mul(b, 0.5)", "0"])
def test_and_to_nothing_else(wrong: str) -> None:
    assert prove(parse_rules(SHIFTED.format(wrong))[0], REGISTRY, examples=False).status != "proved"


INSIDE = """rule test
  given   p: [b, h, m, n]  v: [n, b, h*d]  z: [h*d]  w: [h*d, c]
  t = com.microsoft::FusedMatMul({}, Reshape(Add(v, z), shape=[n, b, h, d]), transBatchB=1)
  y = MatMul(Reshape(Transpose(t, perm=[0, 2, 1, 3]), shape=[b, m, h*d]), w)
  =>
  t = com.microsoft::FusedMatMul({}, Reshape(v, shape=[n, b, h, d]), transBatchB=1)
  y = Add(MatMul(Reshape(Transpose(t, perm=[0, 2, 1, 3]), shape=[b, m, h*d]), w), MatMul({}, w))
"""


def inside(weights: str, bias: str) -> str:
    text = INSIDE.format(weights, weights, bias).replace("  t = ", "  u = ", 1).replace("Transpose(t", "Transpose(u", 1)
    return prove(parse_rules(text)[0], REGISTRY, examples=False).status


def test_also_where_a_further_sum_is_over_what_they_are_shares_of() -> None:
    assert inside("Softmax(p, axis=3)", "z") == "proved"


@pytest.mark.parametrize(
    ("weights", "bias"), [("Exp(p)", "z"), ("Softmax(p, axis=2)", "z"), ("Softmax(p, axis=3)", "Add(z, z)")]
)
def test_and_to_nothing_else_there(weights: str, bias: str) -> None:
    assert inside(weights, bias) != "proved"
