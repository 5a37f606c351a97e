# pyright: basic
"""Exporters write attention with a guard: rows of the softmax that are no numbers become zeros."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.verify.prove import prove
from tests.rewrite.small import every_way, model, numbers
from tests.rewrite.taking import REGISTRY, rules
from tests.verify.sides import verdict

GUARDED = """
g (float[2,3,5,7] s, float[2,3,7,4] v) => (float[2,5,12] y)
{
  p = Softmax<axis = 3>(s)
  n = IsNaN(p)
  w = Where(n, zero, p)
  o = MatMul(w, v)
  t = Transpose<perm = [0,2,1,3]>(o)
  y = Reshape(t, ys)
}"""
DROPPED = """
    given x: [b, h, s, t]  v: [b, h, t, d]
    p = Softmax(x, axis=3)
    y = MatMul(Where(IsNaN(p), 0, p), v)
    =>
    y = MatMul(Softmax(x, axis=3), v)"""
LOST = """
    given x: [b, h, s, t]  v: [b, h, t, d]
    p = Softmax(x, axis=3)
    y = MatMul(Where(IsNaN(p), 0, p), v)
    =>
    m = MatMul(Softmax(x, axis=3), v)
    y = Where(IsNaN(m), 0, m)"""
NOT_A_ROW = """
    given x: [b, h, s, t]  v: [b, h, t, d]
    y = MatMul(Where(IsNaN(x), 0, x), v)
    =>
    m = MatMul(x, v)
    y = Where(IsNaN(m), ReduceSum(Mul(v, 0), axes=[2], keepdims=1), m)"""


@pytest.mark.ort
@pytest.mark.parametrize("scores", [None, np.nan, -np.inf, np.inf])
@pytest.mark.parametrize("values", [None, np.nan, -np.inf, np.inf])
def test_the_guard_behind_the_product_does_the_same_to_what_is_no_number(
    scores: float | None, values: float | None
) -> None:
    feeds = {"s": numbers(2, 3, 5, 7), "v": numbers(2, 3, 7, 4)}
    if scores is not None:
        feeds["s"][1, 2, 3] = scores
        feeds["s"][0, 1, 2, 4] = scores
    if values is not None:
        feeds["v"][1, 2, 6, 1] = feeds["v"][0, 0, 2, 3] = values
    data = model(GUARDED, zero=np.zeros((), np.float32), ys=np.array([2, 5, 12]))
    assert every_way(data, feeds, rules("attention-nan-guard-behind"))


@pytest.mark.smt
@pytest.mark.parametrize("text", [DROPPED, LOST, NOT_A_ROW])
def test_a_guard_is_neither_dropped_nor_moved_where_it_matters(text: str) -> None:
    found = verdict(text)
    assert found.status == "refuted"
    assert "`where finite` is missing" in found.reason


@pytest.mark.smt
def test_the_rule_is_proved() -> None:
    (pattern,) = rules("attention-nan-guard-behind").patterns.values()
    assert prove(pattern.rule, REGISTRY, seconds=120).status == "proved"
