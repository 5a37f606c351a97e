"""What pays at one place, wherever it fits.

Equal blocks of a network are not cut alike: where a region ends depends on what stands before it. What a search did in
the middle of a region of one block lies across an end in another, round after round. So at last the rules that it has
used, and those alone, are tried in the whole graph as it has become, with no ends but barriers. Nobody has timed what
they make there: whole models tell.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules
from superopt.search.candidate import Candidate
from superopt.search.descend import Way
from superopt.search.guessing import LEAST
from superopt.search.hills import Hill, climbed
from superopt.search.hunt import Hunter
from superopt.search.hunted import Gain
from superopt.search.regions import Region, extract, is_open, levels, stitch
from superopt.search.rulebook import Rulebook
from superopt.search.scales import Scales
from superopt.search.trace import Traced, traced

SECONDS = 0.2
"""Of those that a search has."""
MOST, LARGEST = 400, 4000
"""Steps between two barriers, and nodes: each step is a graph of as many, all of which are kept until the end."""


@dataclass(frozen=True)
class Spreader:
    rules: Rules
    ways: Iterable[Hill]
    """Of several steps, which pay only together."""
    rewriter: Rewriter
    scales: Scales
    out_of_time: Callable[[], bool]

    @classmethod
    def of(cls, trace: Sequence[Traced], book: Rulebook, hunter: Hunter) -> Self:
        """With the rules of a trace, and the ways over hills that the search has found with them."""
        used = dict.fromkeys(step.rule for record in trace for step in record.steps)
        rules = Rules([book.rules.patterns.rules[name] for name in used], book.registry)
        ways = tuple(way for way in hunter.ways if used.keys() >= set(way))
        until = time.monotonic() + max(LEAST, SECONDS * hunter.budget.search)

        def is_over() -> bool:
            return time.monotonic() > until or hunter.ending.is_asked()

        return cls(rules, ways, hunter.rewriter, hunter.scales, is_over)

    def spread(self, piece: Piece, where: str, numbered: int) -> Iterator[tuple[Traced, Gain]]:
        """What pays in the graph, by prediction, barrier by barrier. The regions have numbers beyond those that are
        `numbered`."""
        if not len(self.rules):
            return
        done = 0
        while not self.out_of_time() and done < len(between := levels(piece.nodes, is_open(self.rewriter))):
            members = between[done]
            done += 1
            if not 1 < len(members) <= LARGEST:
                continue
            region = extract(piece, members, where)
            found = self._end(region)
            if found is not None:
                numbered += 1
                steps = [taken.step for taken in found.steps]
                yield traced(region, piece, steps, numbered), self._gain(region, found, numbered)
                piece = stitch(piece, region, found.piece, piece.names).piece

    def _gain(self, region: Region, found: Candidate, number: int) -> Gain:
        foretold = (self.scales.price(region.piece, region), found.cost)
        rules = tuple(taken.rule.name for taken in found.steps)
        return Gain(number, 1, foretold, foretold, rules, sure=False, timed=False, confirmed=False)

    def _end(self, region: Region) -> Candidate | None:
        def price(piece: Piece) -> float:
            return self.scales.price(piece, region)

        start = Candidate(region.piece, price(region.piece), ())
        low = Way(start, self.rules, self.rewriter, price, self.out_of_time, MOST).to_the_end()
        return climbed(low or start, self.ways, self.rules, self.rewriter, price, self.out_of_time, MOST) or low
