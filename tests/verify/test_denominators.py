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
