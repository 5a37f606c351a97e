"""Instances of rules whose conditions few random numbers satisfy."""

from __future__ import annotations

from itertools import islice

from superopt.verify.counterexample import compared
from superopt.verify.instances import instances
from tests.verify.sides import REGISTRY, rule

WANTED = 40
SELDOM = """
    given x: [n, c, h, w]  k: [o, q, r, s]  f: int  m: int  p: int  t: int  g: int
    where t >= 1, g >= 1, m >= 1, (f + m - 1)*t + r <= 2*p + h
    y = Slice(Conv(x, k, pads=[p, 0, p, 0], strides=[t, 1], group=g), starts=[f], ends=[f + m], axes=[2])
    =>
    z = Pad(x, pads=[0, 0, p - f*t, 0, 0, 0, (f + m - 1)*t + r - p - h, 0])
    y = Conv(z, k, strides=[t, 1], group=g)"""
WRONG = SELDOM.replace("pads=[0, 0, p - f*t", "pads=[0, 0, p - f")


def test_where_few_draws_are_legal_others_are_near_them() -> None:
    seldom = rule(SELDOM)
    plain = list(instances(seldom, REGISTRY, wanted=WANTED))
    every = list(instances(seldom, REGISTRY, wanted=WANTED, nearby=True))
    assert 0 < len(plain) < WANTED == len(every)
    assert [i.sizes for i in every[: len(plain)]] == [i.sizes for i in plain]
    assert len({i.sizes for i in every}) > WANTED // 2
    again = instances(seldom, REGISTRY, wanted=WANTED, nearby=True)
    assert [i.sizes for i in again] == [i.sizes for i in every]


def test_both_sides_are_compared_at_all_of_them() -> None:
    assert list(compared(rule(SELDOM), REGISTRY, wanted=WANTED, nearby=True)) == [None] * WANTED
    found = islice(compared(rule(WRONG), REGISTRY, wanted=WANTED, nearby=True), WANTED)
    assert any(found)


def test_level_inputs_have_equal_elements() -> None:
    relu = rule("given x: [n, m]\ny = Relu(x)\n=>\ny = Max(x, 0)")
    drawn = [i.numbers.values["x"] for i in instances(relu, REGISTRY, wanted=5, level=True)]
    assert len(drawn) == 5
    assert all(len(set(x.flat)) == 1 for x in drawn)
    assert any(x.size > 1 for x in drawn)
