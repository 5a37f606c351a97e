"""The graph with as few operators as fusing leads to.

Where products take nearly all of the time, a search by predicted cost wanders among spellings of what lies between
them: each saves a little, and they are many. Fusing has a direction, so this goes straight there, whatever is
predicted. Whether it pays, and which of its steps do, the clock is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isfinite

from superopt.cost.kinds import KINDS
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules, Taken
from superopt.search.candidate import Candidate

MOST = 48
"""Steps."""


def condensed(
    start: Piece,
    rules: Rules,
    rewriter: Rewriter,
    price: Callable[[Piece], float],
    out_of_time: Callable[[], bool],
) -> Candidate | None:
    """The end of the way on which every step saves as many operators as any; None where nothing is saved."""
    piece, cost, steps = start, 0.0, list[Taken]()
    while len(steps) < MOST and not out_of_time():
        least, best = (_work(piece), 0.0), None
        for step in _fusing(piece, rules, rewriter):
            work = _work(step.after)
            if work <= least[0] and isfinite(cost := price(step.after)) and (work, cost) < least:
                least, best = (work, cost), step
        if best is None:
            break
        piece = best.after
        steps.append(best)
    return Candidate(piece, price(piece), tuple(steps)) if steps else None


def _fusing(piece: Piece, rules: Rules, rewriter: Rewriter) -> Iterator[Taken]:
    """What takes several nodes together."""
    for node in piece.nodes:
        for match, made in rewriter.moves(rules, node, piece):
            if len(match.nodes) > 1:
                yield rewriter.take(piece, match, made)


def _work(piece: Piece) -> tuple[int, int]:
    """Operators that do something, and all."""
    working = sum(KINDS.get(node.op) != "view" for node in piece.members)
    return working, len(piece.members)
