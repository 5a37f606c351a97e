"""Where fusing leads in the whole graph, without asking the clock of single regions.

Regions of a large model are timed a few times only, to a percent or two; a layer of it may gain less than that by each
of its fusions, and more than that by all of them. On a GPU a region takes seconds to be made ready for the clock, and
many are never timed. So everything fused stands for election with the other variants, and whole models tell.

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
from superopt.search.hunt import Choice, Hunter, Kinds
from superopt.search.scales import Scales

LARGE = 0.03
"""Predicted seconds of a run on a CPU from which on regions are timed too seldom; smaller models do without another
variant."""
FUSING_ROUNDS = 2
SECONDS = 0.1
"""Of those that a search has."""


def pays(scales: Scales, predicted: float) -> bool:
    """Whether a model that runs for so many seconds is timed with everything fused."""
    return scales.opens_slowly or predicted >= LARGE


class Fuser(Hunter):
    """Takes the graph with the fewest operators of every region; where it `stays`, of those that move nothing in ways
    that the region does not."""

    _until = 0.0
    stays = False

    def run(self, piece: Piece, where: str = "") -> Piece:
        self._until = time.monotonic() + SECONDS * self.budget.search
        for number in range(FUSING_ROUNDS):
            piece, changed = self._round(piece, where, number)
            if not changed:
                break
        return piece

    def _choose_all(self, new: Kinds, kinds: Kinds) -> None:
        for key, look in self._looks(new, kinds).items():
            region, price = look.region, self._price_within_growth(look)
            if self.stays:
                price = _staying(region.piece, price)
            found = condensed(region.piece, self.rules, self.rewriter, price, self._is_over)
            self._choices[key] = Choice(look.kind, region.piece, () if found is None else found.steps)

    def _is_over(self) -> bool:
        return time.monotonic() > self._until or self.ending.is_asked()


def _staying(start: Piece, price: Callable[[Piece], float]) -> Callable[[Piece], float]:
    """The price, infinite for what moves in ways that the start does not."""
    usual = _movements(start)
    return lambda piece: price(piece) if _movements(piece) <= usual else math.inf


def _movements(piece: Piece) -> set[str]:
    return {node.kind for node in piece.members if KINDS.get(node.kind) == "movement"}
