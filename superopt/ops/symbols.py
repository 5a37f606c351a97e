"""Unknown sizes, attributes and numbers, with what is assumed of them."""

from __future__ import annotations

from superopt.ops.condition import Condition
from superopt.ops.element import Access, Element
from superopt.ops.index import Poly, symbol


class Symbols:
    """Hands out symbols under names and keeps the facts that hold for them."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.facts: list[Condition] = []

    def at_least(self, least: int, name: str) -> Poly:
        found = symbol(self.prefix + name)
        fact = found >= least
        assert isinstance(fact, Condition)
        self.facts.append(fact)
        return found

    def positive(self, name: str) -> Poly:
        return self.at_least(1, name)

    def natural(self, name: str) -> Poly:
        return self.at_least(0, name)

    def real(self, name: str) -> Element:
        """An unknown number, as a tensor without axes."""
        return Access(self.prefix + name, ())
