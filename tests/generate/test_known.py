"""What proved rules say already, asked of the matcher that the optimizer has."""

from __future__ import annotations

import pytest

import specs
from superopt.generate.known import Known
from superopt.generate.reduce import reduced
from superopt.generate.writing import Finding
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import load_rules, rule_files
from superopt.rewrite.text import parse_rules

pytestmark = pytest.mark.unit

REGISTRY = specs.load()


def rule(body: str) -> Rule:
    return parse_rules(f"rule test\n  doc     .\n  origin  test\n{body}\n")[0]


ASSOCIATIVE = rule("""
  given   x: [...b]  y: [...b]  z: [...b]
  t = Add(x, y)
  r = Add(t, z)
  =>
  u = Add(y, z)
  r = Add(x, u)
""")
TWICE = rule("""
  given   x: [...b]
  t = Relu(x)
  r = Relu(t)
  =>
  r = Relu(x)
""")
MERGED = rule("""
  given   x: [m, k]  w: [k, n]  v: [k, p]
  r1 = MatMul(x, w)
  r2 = MatMul(x, v)
  =>
  c = Concat(w, v, axis=1)
  t = MatMul(x, c)
  r1, r2 = Split(t, split=[n, p], axis=1)
""")


def test_a_rule_leads_where_it_says_and_nothing_else_does():
    for one in (ASSOCIATIVE, TWICE, MERGED):
        assert Known(REGISTRY, [one]).leads(one)
        assert not Known(REGISTRY, [other for other in (ASSOCIATIVE, TWICE, MERGED) if other is not one]).leads(one)


def test_an_instance_of_fewer_axes_and_larger_operands_is_known():
    instance = rule("""
  given   x: [n, 2*m]  y: [n, m]
  c = Concat(y, y, axis=1)
  t = Add(x, c)
  r = Add(t, x)
  =>
  c = Concat(y, y, axis=1)
  u = Add(c, x)
  r = Add(x, u)
""")
    assert Known(REGISTRY, [ASSOCIATIVE]).leads(instance)


def test_a_wider_rule_is_not_known():
    broadcasting = rule("""
  given   x: [n, m]  y: [m]  z: [n, m]
  t = Add(x, y)
  r = Add(t, z)
  =>
  u = Add(y, z)
  r = Add(x, u)
""")
    assert not Known(REGISTRY, [ASSOCIATIVE]).leads(broadcasting)


def test_the_other_direction_is_not_known():
    split = rule("""
  given   x: [m, k]  w: [k, n]  v: [k, p]
  c = Concat(w, v, axis=1)
  t = MatMul(x, c)
  r1, r2 = Split(t, split=[n, p], axis=1)
  =>
  r1 = MatMul(x, w)
  r2 = MatMul(x, v)
""")
    assert not Known(REGISTRY, [MERGED]).leads(split)


def test_several_steps():
    thrice = rule("""
  given   x: [n]
  t = Relu(x)
  s = Relu(t)
  r = Relu(s)
  =>
  r = Relu(x)
""")
    known = Known(REGISTRY, [TWICE])
    assert not known.leads(thrice)
    assert known.leads(thrice, steps=2)


def test_weights_computed_otherwise_are_as_good():
    folded = rule("""
  given   x: [n]  y: [n]  z: [n]
  t = Add(x, y)
  r = Add(t, z)
  =>
  u = Add(z, y)
  r = Add(x, u)
""")
    reordered = rule("""
  given   x: [n]  y: [n]  z: [n]
  t = Add(x, y)
  r = Add(t, z)
  =>
  m = Neg(y)
  u = Sub(z, m)
  r = Add(x, u)
""")
    known = Known(REGISTRY, [ASSOCIATIVE])
    assert known.leads(folded)
    assert not known.leads(reordered)
    assert known.leads(reordered, weights=True)


def test_two_spellings_of_one_node_need_no_rule():
    spelled = rule("""
  given   x: [n, m]
  r = Transpose(x)
  =>
  r = Transpose(x, perm=[1, 0])
""")
    assert Known(REGISTRY).leads(spelled)


@pytest.mark.slow
def test_shipped_rules_lead_where_they_say():
    rules = load_rules(rule_files())[::12]
    silent = [r.name for r in rules if not Known(REGISTRY, [r]).leads(r)]
    assert len(silent) <= 0.05 * len(rules), silent


def test_of_two_rules_that_say_the_same_the_wider_stays():
    narrow = rule("""
  given   x: [n, m]
  t = Relu(x)
  r = Relu(t)
  =>
  r = Relu(x)
""")
    for order in ((narrow, TWICE), (TWICE, narrow)):
        assert [f.rule for f in reduced([Finding(r, "scene") for r in order], REGISTRY)] == [TWICE]
    macro = Finding(narrow, "scene", macro=True)
    assert reduced([macro, Finding(TWICE, "scene")], REGISTRY) == [Finding(TWICE, "scene")], "one step has no hill"
