"""Operators that move data and compute nothing, with what they do to a shape; sizes may be symbols."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from superopt.ops.index import Index, Poly, divide_terms, same
from superopt.partial.writing import Writer, listing, product, replaced

Dims = tuple[Index, ...]

MOST_ZEROS = 0.5
"""How much longer an axis may get."""


class Move(Protocol):
    """From a tensor to another with the same elements, some zeros more, or some elements fewer."""

    def dims(self, dims: Dims) -> Dims | None:
        """The shape afterwards; None where it cannot be done."""
        ...

    def write(self, writer: Writer, x: str, dims: Dims) -> str: ...

    @property
    def inverse(self) -> Move | None:
        """What undoes it; None where only cutting does."""
        ...

    @property
    def theme(self) -> tuple[object, ...]:
        """Equal for moves that differ in the order of elements alone."""
        ...


def through(moves: Iterable[Move], dims: Dims | None) -> Dims | None:
    """The shape after all of them; None where one cannot be done."""
    for move in moves:
        dims = None if dims is None else move.dims(dims)
    return dims


@dataclass(frozen=True)
class Fold:
    """A part of one axis multiplied into another: batch into space, space into batch, channels into space, …"""

    source: int
    target: int
    factor: int
    coarse: bool
    """The source is cut into `factor` runs of neighbours; else into elements that lie `factor` apart."""
    first: bool
    """The parts lie one after the other in the target; else in turn, element by element."""

    @property
    def inverse(self) -> Move | None:
        return Fold(self.target, self.source, self.factor, self.first, self.coarse)

    @property
    def theme(self) -> tuple[object, ...]:
        return (Fold, self.source, self.target, self.factor)

    def __str__(self) -> str:
        what = "runs" if self.coarse else "strides"
        return f"{self.factor} {what} of axis {self.source} into axis {self.target}"

    def dims(self, dims: Dims) -> Dims | None:
        rest = quotient(dims[self.source], self.factor)
        if rest is None:
            return None
        return replaced(replaced(dims, self.source, rest), self.target, dims[self.target] * self.factor)

    def write(self, writer: Writer, x: str, dims: Dims) -> str:
        rest, folded = quotient(dims[self.source], self.factor), self.dims(dims)
        assert rest is not None
        assert folded is not None
        parts: list[tuple[Index, int]] = []
        for axis, n in enumerate(dims):
            split = [(self.factor, -1), (rest, axis)] if self.coarse else [(rest, axis), (self.factor, -1)]
            parts += split if axis == self.source else [(n, axis)]
        order = [k for k, (_, axis) in enumerate(parts) if axis >= 0]
        moved = next(k for k, (_, axis) in enumerate(parts) if axis < 0)
        order.insert(self.target if self.first else self.target + 1, moved)
        if order != list(range(len(parts))):
            x = writer.put(f"Reshape({x}, shape={written(n for n, _ in parts)})")
            x = writer.put(f"Transpose({x}, perm={order})")
        return writer.put(f"Reshape({x}, shape={written(folded)})")


@dataclass(frozen=True)
class Swap:
    """Two axes exchanged."""

    one: int
    other: int

    @property
    def inverse(self) -> Move | None:
        return self

    @property
    def theme(self) -> tuple[object, ...]:
        return (Swap, self.one, self.other)

    def __str__(self) -> str:
        return f"axes {self.one} and {self.other} exchanged"

    def dims(self, dims: Dims) -> Dims | None:
        return tuple(dims[k] for k in self._order(len(dims))) if max(self.one, self.other) < len(dims) else None

    def write(self, writer: Writer, x: str, dims: Dims) -> str:
        return writer.put(f"Transpose({x}, perm={self._order(len(dims))})")

    def _order(self, rank: int) -> list[int]:
        return [self.other if k == self.one else self.one if k == self.other else k for k in range(rank)]


@dataclass(frozen=True)
class Grow:
    """Zeros behind an axis, up to a multiple."""

    axis: int
    multiple: int

    @property
    def inverse(self) -> Move | None:
        return None

    @property
    def theme(self) -> tuple[object, ...]:
        return (Grow, self.axis, self.multiple)

    def __str__(self) -> str:
        return f"axis {self.axis} filled up to a multiple of {self.multiple}"

    def dims(self, dims: Dims) -> Dims | None:
        n = dims[self.axis]
        if not isinstance(n, int) or -n % self.multiple > MOST_ZEROS * n:
            return None
        return replaced(dims, self.axis, n + -n % self.multiple)

    def write(self, writer: Writer, x: str, dims: Dims) -> str:
        n = dims[self.axis]
        assert isinstance(n, int)
        zeros = [0] * len(dims)
        return writer.padded(x, zeros, replaced(zeros, self.axis, -n % self.multiple), first=0)


def cut(writer: Writer, x: str, dims: Dims, wanted: Dims) -> str | None:
    """The first elements of each axis; itself where nothing is left over, None where something is missing."""
    ranges: list[tuple[int, int] | None] = []
    for n, m in zip(dims, wanted, strict=True):
        if same(n, m):
            ranges.append(None)
        elif isinstance(n, int) and isinstance(m, int) and n > m:
            ranges.append((0, m))
        else:
            return None
    return writer.cut(x, tuple(ranges))


def quotient(n: Index, factor: int) -> Index | None:
    """Where it is a whole number, whatever the symbols are."""
    whole, rest = divmod(n, factor) if isinstance(n, int) else divide_terms(n, factor)
    return whole if isinstance(rest, int) and rest == 0 else None


def written(dims: Iterable[Index]) -> str:
    """A shape as text."""
    return listing(_text(n) for n in dims)


def _text(n: Index) -> str:
    if not isinstance(n, Poly):
        return str(n)
    return " + ".join(product(c, *m) for m, c in n.terms.items())
