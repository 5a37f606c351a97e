"""What the clock has said of rules in one search: those that seem to make regions slower come last.

A rule that is priced too low is in every candidate that looks promising, in region after region, and seconds go by
until the clock has refused them all. So others are timed first, and where no time is left at all nobody guesses that
such a rule would pay after all. Sizes differ, and what is slower here may be faster there: one region where it pays
clears it.

A candidate that is slower than another with some of its rules has a guilty one among the others. As few rules are
blamed as that takes, those first that would explain most: beside one that is priced too low are many that are not.
Which of several it was that were always seen together, nobody knows; they are doubted where they are together.

It was slower by so much. What is predicted to gain far more than that elsewhere is worth a guess all the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

from superopt.search.candidate import Candidate

SLOWER, FASTER = 1.01, 0.985
"""Of the best time with a rule over the best without: from which on, and up to which, it says something."""


class Repute:
    def __init__(self) -> None:
        self._suspects: list[tuple[frozenset[str], float]] = []
        """One of each made something slower, by this factor."""
        self._cleared: set[str] = set()

    def learn(self, own: float, times: Mapping[Candidate, float]) -> None:
        """From one region's times, and those of what others made of it."""
        by_rules = [(frozenset(step.rule.name for step in c.steps), taken) for c, taken in times.items()]
        for rule in {rule for rules, _ in by_rules for rule in rules}:
            used = min(taken for rules, taken in by_rules if rule in rules)
            unused = min([own, *(taken for rules, taken in by_rules if rule not in rules)])
            if used < FASTER * unused:
                self._cleared.add(rule)
        by_rules.append((frozenset(), own))
        for rules, taken in by_rules:
            fewer = [pair for pair in by_rules if pair[0] < rules]
            least, best = min(fewer, key=lambda pair: pair[1], default=(rules, taken))
            if taken > SLOWER * best:
                self._suspects.append((rules - least, taken / best))

    def doubts(self, candidate: Candidate) -> bool:
        """Whether it has what is blamed."""
        return self.slowdown(candidate) > 1.0

    def blamed(self, candidate: Candidate) -> set[str]:
        """The rules that it has of what is blamed."""
        rules = {step.rule.name for step in candidate.steps}
        return {rule for group, _ in self._blamed() if group <= rules for rule in group}

    def slowdown(self, candidate: Candidate) -> float:
        """By how much all that it has of what is blamed has made something slower; 1 where it has none of it."""
        rules = {step.rule.name for step in candidate.steps}
        return math.prod(factor for group, factor in self._blamed() if group <= rules)

    def _blamed(self) -> list[tuple[frozenset[str], float]]:
        """Of each group of suspects one, as few as that takes; several where nothing tells them apart."""
        open_cases = [(group - self._cleared, factor) for group, factor in self._suspects]
        open_cases = [case for case in open_cases if case[0]]
        blamed: list[tuple[frozenset[str], float]] = []
        while open_cases:
            seen: dict[str, set[int]] = defaultdict(set)
            for number, (group, _) in enumerate(open_cases):
                for rule in group:
                    seen[rule].add(number)
            worst = max(sorted(seen), key=lambda rule: len(seen[rule]))
            factor = max(open_cases[number][1] for number in seen[worst])
            blamed.append((frozenset(rule for rule in seen if seen[rule] == seen[worst]), factor))
            open_cases = [case for number, case in enumerate(open_cases) if number not in seen[worst]]
        return blamed
