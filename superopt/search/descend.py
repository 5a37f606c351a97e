"""Downhill by the shortest way: every rewrite that pays is made, the one that pays most first.

A search looks at all rewrites of a graph before it goes on to the next, and most of them are where they were before. In
a region of forty operators that is hundreds of graphs for every step. Here a rewrite is looked at once, when the
operators are there that it is about, and what it gained then is what it is believed to gain until it is its turn. So
the end is reached after little more than the first step of a search. It is an end as good as any that only goes
downhill: searches begin there as well as at the beginning.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count

from superopt.ir.graph import Node
from superopt.rewrite.pattern import Pattern
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules, Step, Taken
from superopt.search.candidate import Candidate

MOST = 96
"""Steps."""


class Way:
    """From a start to the end that it has come to."""

    def __init__(
        self,
        start: Candidate,
        rules: Rules,
        rewriter: Rewriter,
        price: Callable[[Piece], float],
        out_of_time: Callable[[], bool],
        most: int = MOST,
    ) -> None:
        self._start, self.piece, self.cost = start, start.piece, start.cost
        self.rules, self.rewriter, self.price, self.out_of_time = rules, rewriter, price, out_of_time
        self._steps: list[Taken] = []
        self._most = most
        self._waiting: list[tuple[float, int, Pattern, Step]] = []
        """Rewrites that paid when they were looked at, the one that paid most first; in words, because each graph is as
        large as the whole."""
        self._numbers = count()

    @property
    def end(self) -> Candidate | None:
        """What was reached; None at the start."""
        return Candidate(self.piece, self.cost, (*self._start.steps, *self._steps)) if self._steps else None

    def to_the_end(self) -> Candidate | None:
        """All that pays, from the start on."""
        self.look_at(lambda node: True)
        self.go_down()
        return self.end

    def look_at(self, concerns: Callable[[Node], bool]) -> None:
        """Finds the rewrites that pay, of those that replace nodes which this concerns."""
        for node in self.piece.nodes:
            for match, made in self.rewriter.moves(self.rules, node, self.piece):
                if self.out_of_time():
                    return
                if any(map(concerns, match.nodes)):
                    step = self.rewriter.take(self.piece, match, made)
                    gain = self.cost - self.price(step.after)
                    if gain > 0:
                        heapq.heappush(self._waiting, (-gain, next(self._numbers), match.pattern, step.step))

    def go_down(self) -> None:
        while self._waiting and len(self._steps) < self._most and not self.out_of_time():
            _, _, pattern, wanted = heapq.heappop(self._waiting)
            found = self.rewriter.find(self.piece, pattern, wanted)
            if not isinstance(found, str):
                step = self.rewriter.take(self.piece, *found)
                self.go([step], self.price(step.after))

    def go(self, steps: Sequence[Taken], cost: float) -> None:
        """Takes these steps if they pay, and looks at what can be done with what they make."""
        if cost >= self.cost:
            return
        fresh = frozenset[Node]()
        for step in steps:
            fresh = step.now(fresh) | step.fresh
        self.piece, self.cost = steps[-1].after, cost
        self._steps += steps
        self.look_at(fresh.__contains__)
