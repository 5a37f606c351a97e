"""Laws about elements hold for any number of axes."""

from __future__ import annotations

import pytest

import specs
from superopt.generate.absorb import absorbed
from superopt.rewrite.text import parse_rules

pytestmark = pytest.mark.unit

REGISTRY = specs.load()


@pytest.mark.parametrize(
    ("given", "left", "right", "meant"),
    [
        ("x: [n, ...b]  y: [n, ...b]", "t = Sub(x, y)\n  r = Add(t, y)", "r = x", "x: [...b]  y: [...b]"),
        ("x: [n, ...b]  s: []", "t = Mul(x, s)\n  r = Neg(t)", "u = Neg(x)\n  r = Mul(u, s)", "x: [...b]  s: []"),
        ("x: [n, ...b]  y: [n]", "t = Add(x, x)\n  r = Sub(t, x)", "r = x", "x: [n, ...b]  y: [n]"),
        ("x: [n, ...b]", "t = Softmax(x, axis=0)\n  r = Relu(t)", "r = Softmax(x, axis=0)", "x: [n, ...b]"),
        ("x: [n, ...b]", "t = MatMul(x, x)\n  r = Neg(t)", "u = Neg(x)\n  r = MatMul(u, x)", "x: [...b]"),
    ],
)  # fmt: skip
def test_an_axis_goes_where_only_elements_matter(given: str, left: str, right: str, meant: str) -> None:
    text = f"rule test\n  doc     .\n  origin  test\n  given   {given}\n  {left}\n  =>\n  {right}\n"
    assert "  ".join(map(str, absorbed(parse_rules(text)[0], REGISTRY).given)) == meant
