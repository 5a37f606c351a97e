"""Numbers that satisfy facts: the quick way to see that something does not follow from them.

A witness gives every symbol a number: those it was told, and for the others a small one that depends on the symbol's
name alone. Only ever used to say "this need not hold": wrong guesses cost time, never truth.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from superopt.ops.condition import AtLeastZero, Both, Condition, Not, Zero
from superopt.ops.index import Index, Poly, Quotient, Symbol, terms_of


def output_index(axis: int) -> Poly:
    """The symbol for the position on an output axis; no rule can give that name to a size."""
    return Poly({(Symbol(f"@{axis}"),): 1})


@dataclass(frozen=True)
class Witness:
    seed: int
    largest: int
    told: Mapping[str, int] = field(default_factory=dict[str, int])
    _known: dict[str, int] = field(default_factory=dict[str, int], repr=False, compare=False)
    """Of symbols that were asked for."""

    def value(self, name: str) -> int:
        found = self._known.get(name)
        if found is None:
            told = self.told.get(name)
            found = self._known[name] = self._guess(name) if told is None else told
        return found

    def _guess(self, name: str) -> int:
        if "!" in name or name[0] == "@":
            return 0 if self.seed % 2 == 0 else zlib.crc32(f"{self.seed}{name}".encode()) % 2
        return 1 + zlib.crc32(f"{self.seed}{name}".encode()) % self.largest

    def with_value(self, name: str, value: int) -> Witness:
        return Witness(self.seed, self.largest, {**self.told, name: value}, {**self._known, name: value})

    def index(self, index: Index) -> int:
        total = 0
        for monomial, c in terms_of(index).items():
            for atom in monomial:
                c *= self.value(atom.name) if isinstance(atom, Symbol) else self._quotient(atom)
            total += c
        return total

    def _quotient(self, quotient: Quotient) -> int:
        return self.index(quotient.number) // self.index(quotient.divisor)

    def satisfies(self, condition: Condition) -> bool:
        try:
            return self._holds(condition)
        except ZeroDivisionError:
            return False

    def _holds(self, condition: Condition) -> bool:
        if isinstance(condition, AtLeastZero):
            return self.index(condition.index) >= 0
        if isinstance(condition, Zero):
            return self.index(condition.index) == 0
        if isinstance(condition, Not):
            return not self._holds(condition.of)
        assert isinstance(condition, Both)
        return all(map(self._holds, condition.parts))


def repaired(witness: Witness, conditions: tuple[Condition, ...], known: int = 0) -> Witness | None:
    """The witness, or one near it, that satisfies all conditions; None where a few steps do not get there. So many of
    the first are known to be satisfied."""
    found = [True] * known + [witness.satisfies(c) for c in conditions[known:]]
    for _ in range(REPAIRS):
        if False not in found:
            return witness
        following = _mended(witness, found, conditions)
        if following is None:
            return None
        witness, found = following
    return None


def _mended(
    witness: Witness, found: Sequence[bool], conditions: tuple[Condition, ...]
) -> tuple[Witness, list[bool]] | None:
    """One symbol moved so that the first broken condition holds, and what of all then does; the move that breaks least
    else."""
    broken = conditions[found.index(False)]
    wanted = _wanted(broken)
    if wanted is None:
        return None
    index, exactly = wanted
    try:
        gap = -witness.index(index)
    except ZeroDivisionError:
        return None
    best: tuple[int, Witness, list[bool]] | None = None
    for monomial, c in terms_of(index).items():
        if len(monomial) != 1 or not isinstance(symbol := monomial[0], Symbol):
            continue
        if exactly and gap % c:
            continue
        step = gap // c if exactly else (-(-gap // c) if c > 0 else gap // c)
        moved = witness.with_value(symbol.name, witness.value(symbol.name) + step)
        if not moved.satisfies(broken):
            continue
        now = [
            moved.satisfies(other) if symbol in other.atoms else held
            for other, held in zip(conditions, found, strict=True)
        ]
        damage = now.count(False)
        if best is None or damage < best[0]:
            best = (damage, moved, now)
    return best[1:] if best is not None else None


def _wanted(condition: Condition) -> tuple[Index, bool] | None:
    """A polynomial to bring to at least zero, or to exactly zero."""
    if isinstance(condition, AtLeastZero):
        return condition.index, False
    if isinstance(condition, Zero):
        return condition.index, True
    if isinstance(condition, Not) and isinstance(condition.of, AtLeastZero):
        return -condition.of.index - 1, False
    if isinstance(condition, Not) and isinstance(condition.of, Zero):
        return condition.of.index - 1, False
    return None


REPAIRS = 6

LARGEST = (1, 2, 3, 3, 4, 4, 6, 6, 9, 9, 16, 16)


def first() -> list[Witness]:
    """Some to begin with, each time the same."""
    return [Witness(seed, largest) for seed, largest in enumerate(LARGEST)]
