"""What the clock has said of rules in one search: those that only ever made a region slower come last.

A rule that is priced too low is in every candidate that looks promising, in region after region, and seconds go by
until the clock has refused them all. So others are timed first, and where no time is left at all nobody guesses that
such a rule would pay after all. Sizes differ, and what is slower here may be faster there: one region where it pays
clears it.
"""

from __future__ import annotations

from collections.abc import Mapping

from superopt.search.candidate import Candidate

SLOWER, FASTER = 1.01, 0.985
"""Of the best time with a rule over the best without: from which on, and up to which, it says something."""


class Repute:
    def __init__(self) -> None:
        self._slower: set[str] = set()
        self._faster: set[str] = set()

    def learn(self, own: float, times: Mapping[Candidate, float]) -> None:
        """From one region's times, and those of what others made of it."""
        by_rules = [({step.rule.name for step in c.steps}, taken) for c, taken in times.items()]
        for rule in {rule for rules, _ in by_rules for rule in rules}:
            used = min(taken for rules, taken in by_rules if rule in rules)
            unused = min([own, *(taken for rules, taken in by_rules if rule not in rules)])
            if used > SLOWER * unused:
                self._slower.add(rule)
            elif used < FASTER * unused:
                self._faster.add(rule)

    def doubts(self, candidate: Candidate) -> bool:
        """Whether one of its rules only ever made something slower."""
        doubtful = self._slower - self._faster
        return any(step.rule.name in doubtful for step in candidate.steps)
