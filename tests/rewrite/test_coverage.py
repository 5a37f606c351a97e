# pyright: basic
"""Every shipped rule is found in a model that is its own left side, and what takes its place computes the same."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest

from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.program import find
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import state
from superopt.rewrite.weights import CannotCombine
from superopt.runtime.library import errors
from tests.rewrite.instances import Instance, instances
from tests.rewrite.taking import GENERATED, REGISTRY, SAMPLED, checked, difference, opened, rules, run
from tests.rewrite.writer import EXPORTED, PLAIN, Spelling

pytestmark = pytest.mark.ort

OPSETS = (23, 24, 21, 18, 17, 13, 11)

SILENT = {
    "conv-enlarge-kernel": "is not determined by the pattern",
    "conv-enlarge-kernel-1d": "is not determined by the pattern",
    "matmul-merge-independent": "its results share nothing",
    "max-pool-merge": "its results share nothing",
    "max-pool-of-batches": "its results share nothing",
}
"""Rules that are never used, and what the matcher says: by how much to enlarge is left open, and of results that have
no input in common there are too many pairs."""


def runs_here(rule: Rule) -> bool:
    """Not where an operator is one that only the CUDA provider has: such a rule is found and written, but not run."""
    return all(find(call, REGISTRY).runs_on == "cpu" for call in rule.calls)


UNKNOWN_TO_ONNX = ("No Op registered for SimplifiedLayerNormalization",)
"""An operator of onnxruntime in ONNX's own domain."""

PROVED = [rule for rule in SAMPLED if state(rule, REGISTRY) == "proved"]


def fired(rule: Rule, instance: Instance) -> list[bytes]:
    """The models that the rule leads to from an instance of it."""
    start = opened(instance.data, Vocabulary(cuda=True), instance.shapes)
    made: list[bytes] = []
    for found in start.matches(start.piece, rules(rule.name)):
        with contextlib.suppress(CannotCombine):  # the root of a negative weight
            made.append(start.exported(start.take(start.piece, found)))
    return made


def answers(data: bytes, instance: Instance, *, optimized: bool) -> list[np.ndarray] | None:
    try:
        return run(data, instance.feeds, optimized=optimized)
    except errors():
        return None


def compare(rule: Rule, instance: Instance, data: bytes) -> bool:
    """Whether both models could be run; fails where they differ."""
    complaint = checked(data)
    assert not complaint or complaint.startswith(UNKNOWN_TO_ONNX)
    before = answers(instance.data, instance, optimized=False)
    if before is None:
        return False
    for optimized in (False, True):
        after = answers(data, instance, optimized=optimized)
        if after is None:
            return False
        assert not difference(before, after), f"{rule.name} at opset {instance.opset}"
    return True


def tried(rule: Rule, opset: int, spelling: Spelling, seed: int, *, every: bool) -> tuple[int, int]:
    """How many models the rule led to from instances of it, and how many of those were run."""
    led = ran = 0
    for instance in instances(rule, REGISTRY, opset, spelling, seed=seed, every=every):
        for data in fired(rule, instance)[: None if every else 1]:
            led += 1
            ran += compare(rule, instance, data)
    return led, ran


@pytest.mark.parametrize("rule", PROVED, ids=lambda rule: rule.name)
def test_a_rule_is_found_in_its_own_pattern(rule: Rule) -> None:
    check(rule)


@pytest.mark.thorough
@pytest.mark.parametrize("rule", GENERATED, ids=lambda rule: rule.name)
def test_a_generated_rule_is_found_in_its_own_pattern(rule: Rule) -> None:
    check(rule)


def check(rule: Rule) -> None:
    """Rules that need to see a mask are found where it is a constant."""
    led = ran = 0
    ways = [(PLAIN, False), (PLAIN, True), (replace(PLAIN, weights=0.5), True)]
    for seed, (opset, (spelling, every)) in enumerate((o, way) for way in ways for o in OPSETS):
        found, run_there = tried(rule, opset, spelling, seed, every=every)
        led, ran = led + found, ran + run_there
        if ran or rule.name in SILENT:
            break
    assert bool(led) == (rule.name not in SILENT)
    assert bool(ran) == (rule.name not in SILENT and runs_here(rule))


@pytest.mark.unit
@pytest.mark.parametrize(("name", "reason"), SILENT.items())
def test_silent_rules_say_why(name: str, reason: str) -> None:
    (rule,) = (r for r in PROVED if r.name == name)
    (instance, *_) = instances(rule, REGISTRY, 17)
    assert reason in opened(instance.data).why_not(rules(name).patterns[name])


@pytest.mark.thorough
@pytest.mark.parametrize("rule", PROVED, ids=lambda rule: rule.name)
def test_a_rule_is_found_however_it_is_spelled(rule: Rule) -> None:
    led = 0
    for seed, opset in enumerate((9, 13, 17, 18, 21, 24)):
        for spelling in (PLAIN, EXPORTED):
            led += tried(rule, opset, spelling, seed + 7, every=True)[0]
    assert bool(led) == (rule.name not in SILENT)
