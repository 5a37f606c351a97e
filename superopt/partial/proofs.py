"""Proofs of mutants: at once, or by rules that they follow from. What was proved once is not proved again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from superopt.ops.registry import Registry
from superopt.partial.derivation import DoesNotFollow, Use, follow
from superopt.rewrite.rule import PARTIAL, Rule
from superopt.rewrite.ruleset import digest, proved
from superopt.verify.prove import SOLVER, Verdict, prove

SECONDS = 20.0
"""For each proof, by the clock on the wall."""
LONGER = 5
"""How many times as long all rules together may take that another follows from."""
BY_LEMMAS = "+lemmas"
"""In the proof of a rule that follows from others, which were proved at once."""


class Proofs:
    """Answers, by the digest of what was asked. Numbers are not tried: that was done when the mutant was looked at."""

    def __init__(self, registry: Registry, seconds: float = SECONDS) -> None:
        self.registry, self.seconds = registry, seconds
        self._known: dict[str, Verdict] = {}

    def of(self, rule: Rule) -> Verdict:
        key = digest(rule, self.registry)
        if key not in self._known:
            self._known[key] = prove(rule, self.registry, seconds=self.seconds, examples=False, patient=False)
        return self._known[key]

    def verdict(self, rule: Rule, uses: Sequence[Use]) -> Verdict:
        """By the rules that it follows from, if there are any; at once else."""
        return self.derived(rule, uses) if uses else self.of(rule)

    def derived(self, rule: Rule, uses: Sequence[Use]) -> Verdict:
        """By the rules it follows from, each proved, and that it does follow."""
        cases, seconds = 0, 0.0
        for lemma in dict.fromkeys(use.rule for use in uses):
            verdict = self.of(lemma)
            cases, seconds = cases + verdict.cases, seconds + verdict.seconds
            if verdict.status != "proved":
                return Verdict("unknown", f"a rule that it follows from: {verdict.reason}", cases, seconds)
            if seconds > LONGER * self.seconds:
                return Verdict(
                    "unknown", f"no proof of all that it follows from within {seconds:.0f} s", cases, seconds
                )
        try:
            follow(rule, uses, self.registry)
        except DoesNotFollow as why:
            return Verdict("unknown", str(why), cases, seconds)
        return Verdict("proved", f"by {len(uses)} rules, one after the other", cases, seconds)

    def named(self, rule: Rule, family: str, *, derived: bool = False) -> Rule:
        """A rule that was proved, with its proof, under a name that tells it from all others."""
        own = digest(rule, self.registry)
        told = replace(rule, name=f"{PARTIAL}-{family}-{own}", origin=f"{PARTIAL} {family}")
        return proved(told, self.registry, "unbounded", f"{SOLVER}{BY_LEMMAS if derived else ''}")
