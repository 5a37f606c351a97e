"""Whether a derivation leads over a hill: through graphs that cost more than both of its ends.

Here graphs are rewritten one rule at a time, as the optimizer does it, instead of all at once in an e-graph: only so is
the cost of a whole graph known, with what it shares.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from superopt.generate.derive import Book, Direction
from superopt.generate.egraph import Shaper, graph_of
from superopt.generate.recipe import Scene
from superopt.generate.sameness import normal
from superopt.generate.term import Pair, Term, replace, subterms
from superopt.generate.worth import cost

State: TypeAlias = "tuple[Term, ...]"
Way: TypeAlias = Literal["level", "hill", "unknown"]

MOST_STATES = 300


class Walker:
    """Rewrites graphs with the rules of a book, never above a cost."""

    def __init__(self, scene: Scene, book: Book, *, steps: int, shaper: Shaper | None) -> None:
        self.scene, self.book, self.steps, self.shaper = scene, book, steps, shaper

    def way(self, pair: Pair) -> Way:
        """`level` if one end can be rewritten into the other without ever costing more than the costlier end, `hill`
        if not, `unknown` if there were too many graphs to look at.

        Graphs are looked at that are up to `steps` rewrites away from either end. From the cheaper end only rules are
        followed that can be followed back.
        """
        left, right = normal(pair.left, self.scene), normal(pair.right, self.scene)
        costs = cost(left, self.scene), cost(right, self.scene)
        start, goal = (left, right) if costs[0] >= costs[1] else (right, left)
        met = self._reached(start, max(costs), {goal}, reversible=False)
        if met is None or goal in met:
            return "unknown" if met is None else "level"
        back = self._reached(goal, max(costs), met, reversible=True)
        if back is None:
            return "unknown"
        return "hill" if met.isdisjoint(back) else "level"

    def _reached(self, start: State, most: int, goals: set[State], *, reversible: bool) -> set[State] | None:
        """All graphs within `steps` rewrites, or those seen when one of the goals is reached; None if too many."""
        seen = {start}
        edge = [start]
        for _ in range(self.steps):
            beyond: list[State] = []
            for state in edge:
                for new in self._next(state, reversible=reversible):
                    if new in seen or cost(new, self.scene) > most:
                        continue
                    seen.add(new)
                    beyond.append(new)
                    if new in goals:
                        return seen
                    if len(seen) > MOST_STATES:
                        return None
            edge = beyond
        return seen

    def _next(self, state: State, *, reversible: bool) -> Iterator[State]:
        terms = list(subterms(*state))
        graph = graph_of(terms, self.scene.templates, shaper=self.shaper)
        by_class = {graph.add(term): term for term in terms}
        codes = dict.fromkeys(code for which in by_class for code in graph.codes(which))
        ways: list[Direction] = [w for code in codes for w in self.book.by_code.get(code, ())]
        for way in (*ways, *(w for w in self.book.joint if w.pattern.code in codes)):
            if reversible and not way.reversible:
                continue
            for match in graph.match(way.pattern):
                if not way.fits(tuple(graph.shape(v) for v in match.values)):
                    continue
                meant: dict[Term, Term] = {n: by_class[v] for n, v in zip(way.pattern.names, match.values, strict=True)}
                new = [replace(t, meant) for t in way.new]
                by: dict[Term, Term] = {by_class[r]: t for r, t in zip(match.roots, new, strict=True)}
                yield normal((replace(t, by) for t in state), self.scene)
