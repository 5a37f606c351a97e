"""No altered rule that differs numerically is ever proved. The prover alone is asked, without counterexamples."""

from __future__ import annotations

import random

import pytest

import specs
from superopt.errors import BadInput
from superopt.rewrite.ruleset import load_rules, rule_files
from superopt.verify.counterexample import find_counterexample
from superopt.verify.prove import prove
from tests.rules.mutate import mutants

REGISTRY = specs.load()
SAMPLE = 16
"""How many of the mutants `make test` tries; `python -m tests.rules.test_mutations` tries all of them."""


def all_mutants() -> list[tuple[str, object]]:
    return [(f"{rule.name}, {what}", mutant) for rule in load_rules(rule_files()) for what, mutant in mutants(rule)]


def some_mutants(rng: random.Random) -> list[tuple[str, object]]:
    """One of each of some rules: to make all of them takes longer than to try these."""
    rules = load_rules(rule_files())
    rng.shuffle(rules)
    found: list[tuple[str, object]] = []
    for rule in rules:
        if made := list(mutants(rule)):
            what, mutant = rng.choice(made)
            found.append((f"{rule.name}, {what}", mutant))
        if len(found) == SAMPLE:
            break
    return found


def wrongly_proved(mutant: object) -> bool:
    """Whether the prover proves a rule that numbers show to be wrong."""
    try:
        return (
            find_counterexample(mutant, REGISTRY) is not None  # pyright: ignore[reportArgumentType]
            and prove(mutant, REGISTRY, seconds=10, examples=False).status == "proved"  # pyright: ignore[reportArgumentType]
        )
    except (BadInput, TypeError, IndexError, KeyError):
        return False  # an alteration that is no rule any more


@pytest.mark.smt
@pytest.mark.slow
def test_no_altered_rule_is_proved_that_differs() -> None:
    chosen = some_mutants(random.Random(7))
    assert len(chosen) == SAMPLE
    assert [name for name, mutant in chosen if wrongly_proved(mutant)] == []


if __name__ == "__main__":
    found = all_mutants()
    bad = [name for name, mutant in found if wrongly_proved(mutant)]
    print(f"{len(found)} altered rules, {len(bad)} proved although they differ")
    print("\n".join(bad))
