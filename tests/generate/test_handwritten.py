"""What people wrote: found by machine since then, or kept with the reason why the generator does not reach it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

import specs
from superopt.generate.idle import is_idle
from superopt.generate.infinite import makes_nan
from superopt.generate.known import Known
from superopt.rewrite.rule import Rule, Step, calls_of
from superopt.rewrite.ruleset import SHIPPED, load_rules, rule_files, state
from superopt.rewrite.text import parse_rules

REGISTRY = specs.load()


def masks_attention(steps: Iterable[Step]) -> bool:
    return any(call.op == "Attention" and not call.domain and len(call.operands) > 3 for call in calls_of(steps))


# onnxruntime's Attention answers 0 where a mask hides a whole row: what leads there asks for a mask that is known.
FORMER = [
    rule
    for rule in load_rules([Path(__file__).with_name("handwritten.rules")])
    if masks_attention(rule.left) == masks_attention(rule.right)
]
BECAUSE = "hand, because "


def shipped() -> Known:
    return Known(REGISTRY, [rule for rule in load_rules(rule_files()) if state(rule, REGISTRY) == "proved"])


@pytest.mark.unit
def test_rules_that_people_wrote_say_why_they_are_needed() -> None:
    for rule in load_rules(sorted(SHIPPED.glob("*.rules"))):
        assert rule.origin.startswith(BECAUSE), rule.name
        assert len(rule.origin) > len(BECAUSE) + 10, rule.name


@pytest.mark.slow
def test_what_people_wrote_before_is_done_in_one_step() -> None:
    known = shipped()
    missing = [rule.name for rule in FORMER[::9] if known.way(rule, steps=1, draws=2) is None]
    assert not missing


@pytest.mark.thorough
@pytest.mark.parametrize("rule", FORMER, ids=lambda rule: rule.name)
def test_all_that_people_wrote_before_is_done_in_one_step(rule: Rule) -> None:
    assert shipped().way(rule, steps=1) is not None


def one(text: str) -> Rule:
    return parse_rules(f"rule law\n  doc     A law.\n  given   {text}\n")[0]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "idle"),
    [
        ("x: [n]  y: [n]  z: [n]\n  u = Sub(Add(x, y), z)\n  =>\n  u = Add(x, Sub(y, z))", True),
        ("x: [n]  y: [n]  z: [n]\n  u = Add(Mul(x, y), Mul(x, z))\n  =>\n  u = Mul(x, Add(y, z))", False),
        ("x: [n, m]\n  u = Relu(Transpose(x, perm=[1, 0]))\n  =>\n  u = Transpose(Relu(x), perm=[1, 0])", False),
        ("x: [n, m]  w: [m, k]  v: [k, p]\n  u = MatMul(MatMul(x, w), v)\n  =>\n  u = MatMul(x, MatMul(w, v))", False),
        ("x: [n, m]  y: [m, k]\n  u = MatMul(x, y)\n  =>\n  u = Reshape(MatMul(x, y), shape=[n, k])", True),
        ("x: [n, m]  y: [m, k]\n  u = MatMul(x, y)\n  =>\n  u = MatMul(Identity(x), y)", False),
        ("x: [n, n, 1]\n  u = Conv(x, Relu(x))\n  =>\n  u = Identity(Conv(x, Relu(x)))", True),
    ],
)
def test_idle_laws(text: str, idle: bool) -> None:
    assert is_idle(one(text)) == idle


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("x: [n]\n  u = Relu(x)\n  =>\n  u = LeakyRelu(x, alpha=0)", True),
        ("x: [n]\n  u = Sub(Tanh(x), Tanh(x))\n  =>\n  u = Sub(x, x)", True),
        ("x: [n]\n  u = Max(x, 0)\n  =>\n  u = Relu(x)", False),
        ("x: [n]\n  u = Sub(x, x)\n  =>\n  u = Sub(Tanh(x), Tanh(x))", False),
    ],
)
def test_laws_that_make_no_number_of_an_infinite_one(text: str, bad: bool) -> None:
    assert makes_nan(one(text), REGISTRY) == bad
