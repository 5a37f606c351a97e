"""A candidate without one of its rules: which of them pay, and which only ride along.

Candidates are ranked by prediction, and a rule that is priced too low is in all of the best. The clock then says no to
every one of them, though the rest of their steps would pay. So the fastest is also timed without each of its rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Taken
from superopt.search.candidate import Candidate

MOST = 4
"""Rules that are left out in turn: those that change the predicted cost most."""


def ablated(candidate: Candidate, start: Piece, rewriter: Rewriter, price: Callable[[Piece], float]) -> list[Candidate]:
    """The candidate without one of its rules, for each of the most important; other steps stay where they still fit."""
    weights: dict[str, float] = {}
    for step in candidate.steps:
        change = abs(price(step.before) - price(step.after))
        weights[step.rule.name] = weights.get(step.rule.name, 0.0) + change
    if len(weights) < 2:
        return []
    found: list[Candidate] = []
    for rule in sorted(weights, key=lambda name: -weights[name])[:MOST]:
        steps = _replayed([s for s in candidate.steps if s.rule.name != rule], start, rewriter)
        if steps:
            found.append(Candidate(steps[-1].after, price(steps[-1].after), steps))
    return found


def _replayed(steps: Sequence[Taken], start: Piece, rewriter: Rewriter) -> tuple[Taken, ...]:
    piece, done = start, list[Taken]()
    for step in steps:
        found = rewriter.find(piece, step.match.pattern, step.step)
        if not isinstance(found, str):
            done.append(rewriter.take(piece, *found))
            piece = done[-1].after
    return tuple(done)
