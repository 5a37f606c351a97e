"""Rules that are true of real numbers and a bad trade in floating point are told from the others."""

from __future__ import annotations

import pytest

import specs
from superopt.generate.safety import trades_safety
from superopt.rewrite.text import parse_rules

pytestmark = pytest.mark.unit

REGISTRY = specs.load()

UNSAFE = {
    "squares in a narrower type": """given x: [m, n]
  w = Cast(x, to="wider")
  z = Cast(ReduceMean(Mul(w, w), axes=[1]), to="narrower")
  =>
  z = ReduceMean(Mul(x, x), axes=[1])""",
    "a difference of large numbers": """given x: [n]  y: [n]
  z = Sub(x, y)
  =>
  z = Sub(Add(x, (100000)), Add(y, (100000)))""",
    "a variance by its moments": """given x: [m, n]
  u = Sub(x, ReduceMean(x, axes=[1]))
  z = ReduceMean(Mul(u, u), axes=[1])
  =>
  v = ReduceMean(x, axes=[1])
  z = Sub(ReduceMean(Mul(x, x), axes=[1]), Mul(v, v))""",
    "a softmax by its exponentials": """given x: [m, n]
  z = Softmax(x, axis=1)
  =>
  e = Exp(x)
  z = Div(e, ReduceSum(e, axes=[1]))""",
}
SAFE = {
    "another order": "given x: [n]  y: [n]\n  z = Add(x, y)\n  =>\n  z = Add(y, x)",
    "a softmax from its exponentials": """given x: [m, n]
  e = Exp(x)
  z = Div(e, ReduceSum(e, axes=[1]))
  =>
  z = Softmax(x, axis=1)""",
    "one product": """given x: [m, k]  a: [k, n]  b: [k, n]
  z = Add(MatMul(x, a), MatMul(x, b))
  =>
  z = MatMul(x, Add(a, b))""",
}


@pytest.mark.parametrize("text", UNSAFE.values(), ids=UNSAFE)
def test_bad_trades_are_seen(text: str) -> None:
    (rule,) = parse_rules(f"rule r\n  {text}")
    assert trades_safety(rule, REGISTRY)


@pytest.mark.parametrize("text", SAFE.values(), ids=SAFE)
def test_good_ones_are_not_refused(text: str) -> None:
    (rule,) = parse_rules(f"rule r\n  {text}")
    assert not trades_safety(rule, REGISTRY)
