"""Sizes as products: a number times symbols. What a shape can be told by, short of sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from superopt.ir.types import Dim

LARGEST = (1 << 63) - 1
LONGEST = 16
"""Symbols of a product that is followed."""


@dataclass(frozen=True)
class Product:
    """`number` times all `symbols`, sorted, with repetition. Symbols stand for sizes; a number may be anything."""

    number: int
    symbols: tuple[str, ...] = ()

    @property
    def dim(self) -> Dim:
        """As a dim of a type: a number or a symbol; None where it is more than that."""
        if not self.symbols:
            return self.number if self.number >= 0 else None
        return self.symbols[0] if self.number == 1 and len(self.symbols) == 1 else None

    def times(self, other: Product) -> Size:
        """None where it is more than an integer of 64 bits holds, or than is worth following."""
        number = self.number * other.number
        if abs(number) > LARGEST or len(self.symbols) + len(other.symbols) > LONGEST:
            return None
        return Product(number, tuple(sorted(self.symbols + other.symbols)) if number else ())

    def over(self, other: Product) -> Product | None:
        """Exactly divided; None where that is open, or where there is no such size."""
        rest = Counter(self.symbols)
        rest.subtract(other.symbols)
        if not other.number or self.number % other.number or any(count < 0 for count in rest.values()):
            return None
        return Product(self.number // other.number, tuple(sorted(rest.elements())))

    def under(self, meanings: Mapping[str, Product]) -> Size:
        """With every symbol replaced that has a meaning."""
        if not any(symbol in meanings for symbol in self.symbols):
            return self
        return product([Product(self.number), *(meanings.get(name, symbol(name)) for name in self.symbols)])


Size: TypeAlias = "Product | None"
"""None: not known."""

ONE = Product(1)


def symbol(name: str) -> Product:
    return Product(1, (name,))


def size_of(dim: Dim) -> Size:
    return None if dim is None else Product(dim) if isinstance(dim, int) else symbol(dim)


def product(sizes: Iterable[Size]) -> Size:
    total: Size = ONE
    for size in sizes:
        if size is None or total is None:
            return None
        total = total.times(size)
    return total


def cancelled(a: Product, b: Product, positive: Collection[str]) -> tuple[Product, Product]:
    """Both without the symbols that they share, of those that stand for 1 or more: equal products are equal without
    them, too."""
    shared = Counter(a.symbols) & Counter(b.symbols)
    common = Product(1, tuple(s for s in sorted(shared.elements()) if s in positive))
    return a.over(common) or a, b.over(common) or b


def broadcast(a: Size, b: Size) -> Size:
    """The size of a result whose operands have these, in a run that does not fail."""
    if a == b or b == ONE:
        return a
    if a == ONE:
        return b
    for size in (a, b):
        if size is not None and not size.symbols and size.number > 1:
            return size  # the other is the same, or 1
    return None
