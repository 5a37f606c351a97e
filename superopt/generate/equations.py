"""Equations between sizes, attributes and numbers of two rules, solved by putting names in one another's place."""

from __future__ import annotations

from collections.abc import Iterable

from superopt.rewrite.editing import substituted
from superopt.rewrite.expression import Expression, Listing, Name, Rank, names_in
from superopt.rewrite.rule import Block, Given

Dims = tuple["Expression | Block", ...]


class NoSolution(Exception):
    """What should be equal is not, or is not seen to be."""


class Solution:
    """What each name stands for, in terms of names that stand for themselves."""

    def __init__(self) -> None:
        self._meant: dict[str, Expression] = {}
        self._blocks: dict[str, Dims] = {}

    def equate(self, a: Expression, b: Expression) -> None:
        """Entries of bundles stand for themselves alone: what they are is not known here."""
        a, b = self.of(a), self.of(b)
        if a == b:
            return
        if isinstance(a, Listing) and isinstance(b, Listing) and len(a.items) == len(b.items):
            for one, other in zip(a.items, b.items, strict=True):
                self.equate(one, other)
        elif isinstance(a, Name) and "." not in a.name and a.name not in names_in(b):
            self._learn(a.name, b)
        elif isinstance(b, Name) and "." not in b.name and b.name not in names_in(a):
            self._learn(b.name, a)
        else:
            raise NoSolution(f"{a} is not seen to be {b}")

    def _learn(self, name: str, meaning: Expression) -> None:
        self._meant[name] = meaning
        self._meant = {n: self.of(e) for n, e in self._meant.items()}
        self._blocks = {n: self.dims(d) for n, d in self._blocks.items()}

    def equate_shapes(self, a: Dims, b: Dims) -> None:
        """A block stands for another, or for the axes in its place."""
        a, b = self.dims(a), self.dims(b)
        while a and b and not isinstance(a[0], Block) and not isinstance(b[0], Block):
            self.equate(a[0], b[0])
            a, b = a[1:], b[1:]
        while a and b and not isinstance(a[-1], Block) and not isinstance(b[-1], Block):
            self.equate(a[-1], b[-1])
            a, b = a[:-1], b[:-1]
        a, b = self.dims(a), self.dims(b)
        if a == b:
            return
        for one, other in ((a, b), (b, a)):
            if len(one) == 1 and isinstance(one[0], Block) and one[0] not in other:
                self._blocks = {n: _replaced(d, one[0], other) for n, d in self._blocks.items()} | {one[0].name: other}
                return
        raise NoSolution(f"the shape {list(map(str, a))} is not seen to be {list(map(str, b))}")

    def of(self, expression: Expression) -> Expression:
        def one(part: Expression) -> Expression:
            if isinstance(part, Rank) and part.block in self._blocks:
                return self._rank(part.block)
            return self._meant.get(part.name, part) if isinstance(part, Name) else part

        return substituted(expression, one)

    def _rank(self, block: str) -> Expression:
        dims = self._blocks[block]
        if len(dims) == 1 and isinstance(dims[0], Block):
            return Rank(dims[0].name)
        raise NoSolution(f"the number of axes of ...{block} is asked for")

    def dims(self, dims: Iterable[Expression | Block]) -> Dims:
        found: list[Expression | Block] = []
        for dim in dims:
            if isinstance(dim, Block):
                found += self._blocks.get(dim.name, (dim,))
            else:
                found.append(self.of(dim))
        return tuple(found)

    def given(self, given: Given) -> Given | None:
        """None for a number that stands for something else."""
        if given.kind in ("int", "real"):
            return None if given.name in self._meant else given
        return Given(given.name, given.kind, self.dims(given.dims))


def _replaced(dims: Dims, block: Block, by: Dims) -> Dims:
    return tuple(d for dim in dims for d in (by if dim == block else (dim,)))
