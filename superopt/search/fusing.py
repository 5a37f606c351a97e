"""Where fusing leads in the whole graph.

Products that are taken together are parted again by copies, which on a CPU may take longer than is saved. So there
everything fused that moves no more than before stands for election, too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from superopt.cost.kinds import KINDS
from superopt.rewrite.piece import Piece
from superopt.search.condense import condensed
from superopt.search.guessing import LEAST, Guesser
from superopt.search.hunt import Choice, Kinds
from superopt.search.hunted import FUSED, STAYING

SECONDS = 0.1
"""Of those that a search has."""


class Fuser(Guesser):
    """Takes the graph with the fewest operators of every region."""

    name, rounds = FUSED, 2
    _until = 0.0

    def run(self, piece: Piece, where: str = "") -> Piece:
        self._until = time.monotonic() + max(LEAST, SECONDS * self.budget.search)
        return super().run(piece, where)

    def _choose_all(self, new: Kinds, kinds: Kinds) -> None:
        for key, look in self._looks(new, kinds).items():
            region, price = look.region, self._allowed(look.region.piece, self._price_within_growth(look))
            found = condensed(region.piece, self.rules, self.rewriter, price, self._is_over)
            self._choices[key] = Choice(look.kind, region.piece, () if found is None else found.steps)

    def _allowed(self, start: Piece, price: Callable[[Piece], float]) -> Callable[[Piece], float]:
        return price

    def _is_over(self) -> bool:
        return time.monotonic() > self._until or self.ending.is_asked()


class StayingFuser(Fuser):
    """The same of those that move nothing in ways that the region does not."""

    name = STAYING

    def _allowed(self, start: Piece, price: Callable[[Piece], float]) -> Callable[[Piece], float]:
        usual = _movements(start)
        return lambda piece: price(piece) if _movements(piece) <= usual else math.inf


def _movements(piece: Piece) -> set[str]:
    return {node.kind for node in piece.members if KINDS.get(node.kind) == "movement"}
