"""Accepted pairs as rewrite rules of an e-graph, and what follows from them in a bounded number of steps.

A node's age is the number of rule applications that brought it in: 0 for terms that were added, one more than the
oldest node of the match for what a rule builds. Rules are applied to nodes younger than `steps`, so nothing is built in
more than `steps` rounds, in whatever order the rules come. After a rule is added only its own matches are looked for;
from then on only what changed, and what stands above it, is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from superopt.generate.egraph import EGraph
from superopt.generate.fitting import Shapes
from superopt.generate.pattern import Building, Pattern, compile_building, compile_pattern
from superopt.generate.term import Pair, Term, leaves

Path: TypeAlias = "tuple[int | None, ...]"


@dataclass(frozen=True, eq=False)
class Direction:
    """One way of using a rule: what is looked for, and what it is then equal to."""

    pattern: Pattern
    building: Building
    new: tuple[Term, ...]
    fits: Callable[[tuple[int | None, ...]], bool]
    reversible: bool
    """Whether the way back is one too: each side has the leaves of the other."""


def directions(pair: Pair, shapes: Shapes | None, *, both: bool = True) -> Iterator[Direction]:
    """The ways in which a pair can be used: the new side may have no leaf that the old one does not bind, and the old
    side may not be a bare leaf, which would fit everything. Several results are looked for together."""
    ways = [(pair.left, pair.right), (pair.right, pair.left)]
    alike = set(leaves(*pair.left)) == set(leaves(*pair.right))
    for old, new in ways if both else ways[:1]:
        pattern = compile_pattern(old)
        if pattern is not None and set(leaves(*new)) <= set(pattern.names):
            fits = shapes.fit(pattern.names, (*old, *new)) if shapes is not None else _anything
            yield Direction(pattern, compile_building(new, pattern.names), new, fits, alike and both)


def _anything(_: tuple[int | None, ...]) -> bool:
    return True


class Book:
    """Rules by the operator that they are looked for at."""

    def __init__(self) -> None:
        self.by_code: dict[int, list[Direction]] = {}
        self.joint: list[Direction] = []
        """Those for several results."""

    def add(self, direction: Direction) -> None:
        if len(direction.new) > 1:
            self.joint.append(direction)
            return
        self.by_code.setdefault(direction.pattern.code, []).append(direction)

    def copy(self) -> Book:
        copy = Book()
        copy.by_code = {code: list(ways) for code, ways in self.by_code.items()}
        copy.joint = list(self.joint)
        return copy


class Derivation:
    """A graph in which the rules of a book are applied until nothing new comes of it within the bounds."""

    def __init__(self, graph: EGraph, book: Book, *, steps: int) -> None:
        self.graph, self.book, self.steps = graph, book, steps

    def learn(self, ways: Iterable[Direction]) -> None:
        """Rules for one result that were just added to the book: find their own matches, then what follows."""
        for way in ways:
            self._apply(way, self.graph.having(way.pattern.code))
        self.run()

    def run(self) -> None:
        """Apply all rules to what changed, until nothing does."""
        graph = self.graph
        while graph.fresh or graph.joined:
            change = _Change(graph)
            for code, ways in self.book.by_code.items():
                for way in ways:
                    if roots := change.under(code, way.pattern.paths):
                        self._apply(way, roots)
            for way in self.book.joint:
                self._apply(way, None)

    def equal(self, pair: Pair) -> bool:
        return all(self.graph.equal(a, b) for a, b in zip(pair.left, pair.right, strict=True))

    def _apply(self, way: Direction, roots: list[int] | None) -> None:
        graph = self.graph
        for match in graph.match(way.pattern, roots, younger=self.steps):
            if not way.fits(tuple([graph.shape(v) for v in match.values])):
                continue
            made = graph.build(way.building, match.values, match.age + 1)
            if made is not None and all(
                graph.shape(a) == graph.shape(b) for a, b in zip(match.roots, made, strict=True)
            ):
                for a, b in zip(match.roots, made, strict=True):
                    graph.merge(a, b)
        graph.rebuild()


class _Change:
    """What changed in a graph since it was last asked, and which classes that may concern."""

    def __init__(self, graph: EGraph) -> None:
        self.graph = graph
        self.fresh = {code: list(dict.fromkeys(map(graph.find, found))) for code, found in graph.fresh.items()}
        self.joined = list(dict.fromkeys(map(graph.find, graph.joined)))
        graph.fresh.clear()
        graph.joined.clear()
        self._above: dict[Path, list[int]] = {}

    def under(self, code: int, paths: Iterable[Path]) -> list[int]:
        """Classes with a new node of this operator, or with a change at the start of a path that ends there. Where a
        class was made from two, its own nodes are what they were: only what stands above may see new ones."""
        found = dict.fromkeys(self.fresh.get(code, ()))
        for path in paths:
            found.update(dict.fromkeys(self._walk(path)))
        return list(found)

    def _walk(self, path: Path) -> list[int]:
        if path not in self._above:
            self._above[path] = self._start(path[0]) if len(path) == 1 else self._up(self._walk(path[:-1]), path[-1])
        return self._above[path]

    def _start(self, code: int | None) -> list[int]:
        if code is None:
            return self.joined
        return [*self.fresh.get(code, ()), *(c for c in self.joined if code in self.graph.codes(c))]

    def _up(self, classes: list[int], code: int | None) -> list[int]:
        graph = self.graph
        users = (user for c in classes for user in graph.using(graph.find(c), code)) if code is not None else ()
        return list(dict.fromkeys(users))
