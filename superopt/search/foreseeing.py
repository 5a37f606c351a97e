"""Everything that is predicted to pay, in the whole graph.

Where no time was left to time a region, its rewrites are not used, however much they are predicted to gain: a price may
be wrong. But all regions together are one model more to be timed, and then the clock has spoken of all of them.
"""

from __future__ import annotations

from dataclasses import replace

from superopt.rewrite.rewriter import Rewriter
from superopt.search.ending import Ending
from superopt.search.guessing import LEAST, Guesser
from superopt.search.hunt import Choice, Kinds
from superopt.search.hunted import FORESEEN, Budget
from superopt.search.rulebook import Rulebook
from superopt.search.scales import Scales
from superopt.search.stages import Tell

SECONDS = 0.3
"""Of those that a search has."""
FEW = 40
"""Graphs of a region that the search has not seen: the shortest ways down, and a little beside them."""
WORTH = 0.99
"""Predicted cost, over the region's own, from which on a graph is used."""


class Foreseer(Guesser):
    """Takes the graph that is predicted to be the cheapest of every region."""

    name, rounds = FORESEEN, 3

    def __init__(
        self, book: Rulebook, rewriter: Rewriter, scales: Scales, budget: Budget, tell: Tell, ending: Ending
    ) -> None:
        seconds = max(LEAST, SECONDS * budget.search)
        few = replace(budget, search=seconds, candidates=min(FEW, budget.candidates))
        super().__init__(book, rewriter, scales, few, tell, ending)

    def _choose_all(self, new: Kinds, kinds: Kinds) -> None:
        looks = self._looks(new, kinds)
        unseen = {key: look for key, look in looks.items() if key not in self.known}
        explored = zip(unseen, self._explore(list(unseen.values())), strict=True)
        found = {**self.known, **{key: each.best for key, each in explored if each.candidates}}
        for key, look in looks.items():
            best = found.get(key)
            if best is not None and best.steps:
                start = best.steps[0].before
                if best.cost <= WORTH * self.scales.price(start, look.region):
                    self._choices[key] = Choice(look.kind, start, best.steps)
