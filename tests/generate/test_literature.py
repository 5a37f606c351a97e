"""What is known from TASO and the literature, and how much of it is among the shipped rules or follows from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import specs
from superopt.generate.known import Known, derivation
from superopt.rewrite.remembered import read_rules
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import load_rules, rule_files, state
from superopt.verify.counterexample import find_counterexample

REGISTRY = specs.load()
LAWS = read_rules(Path(__file__).with_name("literature.rules"))
STEPS = 3
SHARE = 0.95
"""Of the laws, to be derived in one direction at least. The prover does not join maxima of windows yet."""


@pytest.mark.unit
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_laws_are_true(law: Rule) -> None:
    assert find_counterexample(law, REGISTRY, wanted=6) is None


@pytest.mark.slow
def test_the_shipped_rules_lead_to_them() -> None:
    known = Known(REGISTRY, [rule for rule in load_rules(rule_files()) if state(rule, REGISTRY) == "proved"])
    missing = [law.name for law in LAWS if not any(derivation(w, known, STEPS) is not None for w in (law, turned(law)))]
    assert len(missing) <= (1 - SHARE) * len(LAWS), missing


def turned(law: Rule) -> Rule:
    return replace(law, left=law.right, right=law.left)
