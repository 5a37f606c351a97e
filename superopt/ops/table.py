"""Known numbers as a tensor, such as the matrices of a transform. (Not among the words of definitions in formula.py:
an edit there unproves every rule.)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from superopt.ops.element import Element, lift, select
from superopt.ops.formula import Tensor
from superopt.ops.index import Index, is_zero


def table(values: Sequence[Any]) -> Tensor:
    """A tensor of known numbers, given as nested lists with equal lengths on each level."""
    shape: list[int] = []
    level: Any = values
    while isinstance(level, Sequence):
        shape.append(len(level))  # pyright: ignore[reportUnknownArgumentType]
        level = level[0] if level else None  # pyright: ignore[reportUnknownVariableType]

    def within(part: Any, place: tuple[Index, ...]) -> Element:
        if not place:
            return lift(part)
        found = within(part[-1], place[1:])
        for k in range(len(part) - 2, -1, -1):
            found = select(is_zero(place[0] - k), within(part[k], place[1:]), found)
        return found

    return Tensor(tuple(shape), lambda *i: within(values, i))
