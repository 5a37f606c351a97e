"""A whole graph rewritten without asking the clock of single regions.

Regions of a large model are timed a few times only, to a percent or two; a layer of it may gain less than that by each
of its rewrites, and more than that by all of them. On a GPU a region takes seconds to be made ready for the clock, and
many are never timed. So guesses stand for election with the other variants, and whole models tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from superopt.rewrite.piece import Piece
from superopt.search.candidate import Candidate
from superopt.search.hunt import ORDER, Hunter
from superopt.search.scales import Scales

LARGE = 0.03
"""Predicted seconds of a run on a CPU from which on regions are timed too seldom; smaller models do without guesses."""
LEAST = 5.0
"""Seconds for one, where a search has less."""


def pays(scales: Scales, predicted: float) -> bool:
    """Whether a model that runs for so many seconds is timed with guesses."""
    return scales.opens_slowly or predicted >= LARGE


class Guesser(Hunter):
    name: ClassVar[str]
    rounds: ClassVar[int]
    known: Mapping[str, Candidate] = {}
    """What is predicted to be best of regions by their structure, as far as a search has found out."""

    def run(self, piece: Piece, where: str = "") -> Piece:
        for number in ORDER[: self.rounds]:
            piece, changed = self._round(piece, where, number)
            if not changed:
                break
        return piece
