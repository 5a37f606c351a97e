"""Rules that ship are proved as they stand, a sample is proved again, and no broken rule is proved."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

import specs
from superopt.errors import BadInput
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import load_rules, rule_files, state
from superopt.rewrite.text import format_rule, parse_rules
from superopt.verify.prove import prove

REGISTRY = specs.load()
SHIPPED = load_rules(rule_files())
BROKEN = load_rules(rule_files([Path(__file__).parent / "broken"]))
AGAIN = random.Random(11).sample(SHIPPED, 12)


@pytest.mark.unit
def test_every_shipped_rule_is_proved_as_it_stands() -> None:
    assert [f"{r.source}:{r.line} {r.name}" for r in SHIPPED if state(r, REGISTRY) != "proved"] == []


@pytest.mark.unit
def test_there_are_enough_of_them() -> None:
    assert len(SHIPPED) >= 150
    assert len(BROKEN) >= 60


@pytest.mark.unit
def test_every_rule_says_what_it_means() -> None:
    assert [r.name for r in (*SHIPPED, *BROKEN) if not r.doc] == []


@pytest.mark.unit
def test_rules_print_and_parse_to_themselves() -> None:
    for rule in (*SHIPPED, *BROKEN):
        (again,) = parse_rules(format_rule(rule))
        assert again == rule


@pytest.mark.smt
@pytest.mark.slow
@pytest.mark.parametrize("rule", AGAIN, ids=lambda r: r.name)
def test_a_sample_is_proved_again(rule: Rule) -> None:
    found = prove(rule, REGISTRY)
    assert found.status == "proved", found.reason


@pytest.mark.smt
@pytest.mark.parametrize("rule", BROKEN, ids=lambda r: r.name)
def test_no_broken_rule_is_proved(rule: Rule) -> None:
    with contextlib.suppress(BadInput):  # a condition on nothing is refused outright
        assert prove(rule, REGISTRY, seconds=5).status in ("refuted", "unknown")
