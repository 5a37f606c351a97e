"""Tensors that hold positive numbers: what is true of them alone is proved, and what is not is not."""

from __future__ import annotations

import pytest

from superopt.errors import BadInput
from superopt.verify.prove import prove
from tests.verify.sides import REGISTRY, rule, verdict

pytestmark = pytest.mark.smt

SCALED = """
    given x: [n, c]  s: {}[c]  b: [c]
    y = Relu(Add(Mul(x, s), b))
    =>
    y = Mul(Relu(Add(x, Div(b, s))), s)"""
ADDED_UP = """
    given x: [n, c]  s: {}[c]  b: [c]  k: [c, m]
    y = MatMul(Relu(Add(Mul(x, s), b)), k)
    =>
    y = MatMul({}, Mul(k, Reshape(s, shape=[c, 1])))"""


def test_a_positive_scale_passes_a_relu() -> None:
    assert verdict(SCALED.format("positive")).status == "proved"
    assert verdict(SCALED.format("")).status == "refuted"


def test_also_inside_of_sums() -> None:
    inside = "Relu(Add(x, Div(b, s)))"
    assert verdict(ADDED_UP.format("positive", inside)).status == "proved"
    assert verdict(ADDED_UP.format("", inside)).status == "refuted"
    assert verdict(ADDED_UP.format("positive", "Add(Max(x, Neg(Div(b, s))), Div(b, s))")).status == "proved"
    assert verdict(ADDED_UP.format("positive", "Add(Min(x, Neg(Div(b, s))), Div(b, s))")).status == "refuted"
    assert verdict(ADDED_UP.format("positive", "Add(Max(x, Div(b, s)), Div(b, s))")).status == "refuted"


def test_without_examples_the_proof_itself_tells_them_apart() -> None:
    for scale, inside, status in (
        ("positive", "Relu(Add(x, Div(b, s)))", "proved"),
        ("", "Relu(Add(x, Div(b, s)))", "unknown"),
        ("positive", "Add(Min(x, Neg(Div(b, s))), Div(b, s))", "unknown"),
        ("positive", "Relu(Sub(x, Div(b, s)))", "unknown"),
    ):
        assert prove(rule(ADDED_UP.format(scale, inside)), REGISTRY, examples=False).status == status


def test_it_is_text() -> None:
    assert "s: positive[c]" in str(rule(SCALED.format("positive")).given[1])
    with pytest.raises(BadInput, match="expected"):
        rule(SCALED.format("negative"))
