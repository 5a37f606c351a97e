"""What is priced: a kind of work in a unit, and where operators of one kind differ, which of them.

A column that was never measured is priced like its general one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Unit: TypeAlias = Literal["run", "byte", "element", "operation"]


class Column(NamedTuple):
    kind: str
    unit: Unit
    of: str = ""

    @property
    def general(self) -> Column:
        return Column(self.kind, self.unit)

    @property
    def text(self) -> str:
        return " ".join(part for part in self if part)


Amounts: TypeAlias = "tuple[tuple[Column, float], ...]"
