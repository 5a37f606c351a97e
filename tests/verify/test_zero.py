"""A number by which something is divided may be 0: a law that is true of all others is not true then."""

from __future__ import annotations

import pytest

from tests.verify.sides import verdict

pytestmark = pytest.mark.smt


def test_a_division_does_not_move_over_padding() -> None:
    """What only padding reaches is 0 before the division, and 0/0 after it."""
    found = verdict("""
        given x: [n, m, k, p]  y: [m, q, h, s]  c: real
        y1 = Div(Conv(x, y, pads=[1, 1, 1, 1], strides=[3, 3]), c)
        =>
        y1 = Conv(Div(x, c), y, pads=[1, 1, 1, 1], strides=[3, 3])""")
    assert found.status == "refuted"
    assert "c=0.0" in found.reason


def test_where_the_number_is_not_zero_it_does() -> None:
    found = verdict("""
        given x: [n, m]  y: [m, k]  c: real
        where c > 0
        z = Div(MatMul(x, y), c)
        =>
        z = MatMul(Div(x, c), y)""")
    assert found.status == "proved", found.reason


SHIFTED = """
    given x: [...b, n]  t: [...b, 1]  g: [n]  c: [n]  e: real
    where finite{more}
    y = LayerNormalization(Add(x, t), g, c, axis=|b|, epsilon=e)
    =>
    y = LayerNormalization(x, g, c, axis=|b|, epsilon=e)"""


def test_elements_that_are_all_the_same_have_no_variance_to_divide_by() -> None:
    """With an epsilon of 0 that leaves 0/0 on one side, and what rounding made of it on the other."""
    found = verdict(SHIFTED.format(more=""))
    assert found.status == "refuted"
    assert "e=0.0" in found.reason
    assert verdict(SHIFTED.format(more=", e > 0")).status == "proved"
