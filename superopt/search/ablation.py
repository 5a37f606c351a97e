"""A candidate without one of its rules, or with one more: which of them pay, and which only ride along.

Candidates are ranked by prediction, and a rule that is priced too low is in all of the best. The clock then says no to
every one of them, though the rest of their steps would pay. So the fastest is also timed without each of its rules, and
with one more of those that others have; and before the clock has said anything, what is predicted to be fastest without
those rules that hardly matter, and with the one alone that matters most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import TypeAlias

from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Taken
from superopt.search.candidate import Candidate

MOST = 4
"""Rules that are left out in turn: those that change the predicted cost most."""


HARDLY = 0.01
"""Of the region's predicted cost: what a rule changes that hardly matters."""

Price: TypeAlias = Callable[[Piece], float]


def ablated(candidate: Candidate, start: Piece, rewriter: Rewriter, price: Price) -> list[Candidate]:
    """The candidate without one of its rules, for each of the most important; other steps stay where they still fit."""
    weights = _weights(candidate, price)
    if len(weights) < 2:
        return []
    heaviest = sorted(weights, key=lambda name: -weights[name])[:MOST]
    return _kept((weights.keys() - {rule} for rule in heaviest), candidate, start, rewriter, price)


def extended(
    fastest: Candidate, others: Iterable[Candidate], start: Piece, rewriter: Rewriter, price: Price
) -> list[Candidate]:
    """The fastest with one more rule, for the most promising of those that others have."""
    own, found, seen = _rules(fastest), list[Candidate](), set[str]()
    for other in sorted(others, key=lambda c: price(c.piece)):
        for rule in sorted(_rules(other) - own - seen):
            seen.add(rule)
            made = _kept([own | {rule}], other, start, rewriter, price)
            found += [c for c in made if rule in _rules(c)]
    return sorted(found, key=lambda c: c.cost)[:MOST]


def essentials(candidate: Candidate, start: Piece, rewriter: Rewriter, price: Price) -> list[Candidate]:
    """The candidate with those of its rules that matter, and with the one alone that matters most."""
    weights = _weights(candidate, price)
    least = HARDLY * price(start)
    matter = {rule for rule, weight in weights.items() if weight >= least}
    if len(weights) < 2 or not matter:
        return []
    choices = [matter] if len(matter) < len(weights) else []
    choices += [{max(matter, key=lambda name: weights[name])}] if len(matter) > 1 else []
    return _kept(choices, candidate, start, rewriter, price)


def without(candidate: Candidate, rules: Set[str], start: Piece, rewriter: Rewriter, price: Price) -> list[Candidate]:
    """What is left of the candidate without these of its rules, if anything is."""
    return _kept([_rules(candidate) - rules], candidate, start, rewriter, price)


def _rules(candidate: Candidate) -> set[str]:
    return {step.rule.name for step in candidate.steps}


def _weights(candidate: Candidate, price: Price) -> dict[str, float]:
    """How much each rule changes the predicted cost."""
    weights: dict[str, float] = {}
    for step in candidate.steps:
        change = abs(price(step.before) - price(step.after))
        weights[step.rule.name] = weights.get(step.rule.name, 0.0) + change
    return weights


def _kept(
    choices: Iterable[Set[str]], candidate: Candidate, start: Piece, rewriter: Rewriter, price: Price
) -> list[Candidate]:
    """The candidate with each choice of its rules."""
    traces = [_replayed([s for s in candidate.steps if s.rule.name in rules], start, rewriter) for rules in choices]
    return [Candidate(steps[-1].after, price(steps[-1].after), steps) for steps in traces if steps]


def _replayed(steps: Sequence[Taken], start: Piece, rewriter: Rewriter) -> tuple[Taken, ...]:
    piece, done = start, list[Taken]()
    for step in steps:
        found = rewriter.find(piece, step.match.pattern, step.step)
        if not isinstance(found, str):
            done.append(rewriter.take(piece, *found))
            piece = done[-1].after
    return tuple(done)
