"""What proved rules say already: whether they lead from one side of a rule to the other, by the matcher
that the optimizer has.

An answer is about graphs of certain sizes, drawn at random; the rules lead there at all sizes drawn, for every number
of axes. Nothing is proved by that and nothing need be: a rule that follows from others is not needed, whether or not
it is true.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from superopt.generate.situation import Situation, situations
from superopt.ops.registry import Registry
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.likeness import Likeness
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules
from superopt.rewrite.rule import Rule

OPSET = 24
DRAWS = 3
"""Sizes tried for each number of axes."""
MOST_GRAPHS = 400
"""Graphs looked at on the way from one side to the other."""


class Known:
    """Rules that were proved; more may be added."""

    def __init__(self, registry: Registry, rules: Iterable[Rule] = ()) -> None:
        self.registry = registry
        self._rules = Rules((), registry)
        self._called: dict[str, Rule] = {}
        """As they were added; in here a rule's name is its number."""
        self._without: set[str] = set()
        self._fresh()
        for rule in rules:
            self.add(rule)

    def _fresh(self) -> None:
        """Everything remembered about graphs, gone."""
        self._rewriter = Rewriter(self.registry, OPSET, Vocabulary(cuda=True))
        self._likeness = Likeness(self._rewriter.constants, self._rewriter.reader)

    def add(self, rule: Rule) -> None:
        name = _name(len(self._rules))
        self._called[name] = rule
        self._rules.add(replace(rule, name=name))

    def remove(self, which: int) -> None:
        """The rule that was added after so many others counts no more."""
        self._without.add(_name(which))

    @property
    def rules(self) -> list[Rule]:
        """Those that count."""
        return [rule for name, rule in self._called.items() if name not in self._without]

    def __len__(self) -> int:
        """How many were added."""
        return len(self._rules)

    def ever_leads(self, rule: Rule) -> bool:
        """Whether one step leads from its left side to its right side at some sizes at least."""
        self._fresh()
        return any(self._reached(s, 1) is not None for s in situations(rule, self._rewriter, wanted=DRAWS))

    def leads(self, rule: Rule, *, steps: int = 1, weights: bool = False, without: int | None = None) -> bool:
        """Whether the rules rewrite its left side into its right side in so many steps; `without` one of them."""
        if without is None:
            return self.way(rule, steps=steps, weights=weights) is not None
        self._without.add(_name(without))
        try:
            return self.way(rule, steps=steps, weights=weights) is not None
        finally:
            self._without.discard(_name(without))

    def way(self, rule: Rule, *, steps: int, weights: bool = False, draws: int = DRAWS) -> tuple[str, ...] | None:
        """The names of the rules that lead there, at the first sizes drawn; None where they do not at some."""
        self._fresh()
        found: tuple[str, ...] | None = None
        for situation in situations(rule, self._rewriter, wanted=draws, weights=weights):
            way = self._reached(situation, steps)
            if way is None:
                return None
            found = way if found is None else found
        return found

    def _reached(self, situation: Situation, steps: int) -> tuple[str, ...] | None:
        """Best first: by how far a graph's operators are from the goal's."""
        goal = self._likeness.of(situation.goal)
        wanted = _operators(Piece(situation.goal, {}, {}, self._rewriter.constants))
        start = self._likeness.of(situation.start.results)
        if start == goal:  # two spellings of one thing
            return ()
        seen = {start}
        queue: list[tuple[int, int, tuple[str, ...], Piece]] = [(0, 0, (), situation.start)]
        while queue:
            _, _, way, piece = heapq.heappop(queue)
            for name, after in self._moves(piece):
                key = self._likeness.of(after.results)
                if key == goal:
                    return (*way, self._called[name].name)
                if key in seen or len(way) + 1 >= steps or len(seen) > MOST_GRAPHS:
                    continue
                seen.add(key)
                heapq.heappush(
                    queue, (_distance(_operators(after), wanted), len(seen), (*way, self._called[name].name), after)
                )
        return None

    def _moves(self, piece: Piece) -> Iterator[tuple[str, Piece]]:
        for node in piece.nodes:
            for match, made in self._rewriter.moves(self._rules, node, piece):
                name = match.pattern.rule.name
                if name not in self._without:
                    yield name, self._rewriter.take(piece, match, made).after


def derivation(rule: Rule, known: Known, steps: int) -> tuple[str, ...] | None:
    """A way from its left side to its right side: as it stands, or where all its inputs but the first are weights, in
    which case only what runs has to become the same."""
    for weights in (False, True):
        way = known.way(rule, steps=steps, weights=weights, draws=1)
        if way is not None:
            return way
    return None


def _name(which: int) -> str:
    return f"known{which}"


def _operators(piece: Piece) -> Counter[tuple[str, str]]:
    return Counter((node.domain, node.op) for node in piece.members)


def _distance(a: Counter[tuple[str, str]], b: Counter[tuple[str, str]]) -> int:
    return (a - b).total() + (b - a).total()
