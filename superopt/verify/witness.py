"""Numbers that satisfy facts: the quick way to see that something does not follow from them.

A witness gives every symbol a number: those it was told, and for the others a small one that depends on the symbol's
name alone. Only ever used to say "this need not hold": wrong guesses cost time, never truth.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
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

    def value(self, name: str) -> int:
        if name in self.told:
            return self.told[name]
        if "!" in name or name[0] == "@":
            return 0 if self.seed % 2 == 0 else zlib.crc32(f"{self.seed}{name}".encode()) % 2
        return 1 + zlib.crc32(f"{self.seed}{name}".encode()) % self.largest

    def index(self, index: Index) -> int:
        total = 0
        for monomial, c in terms_of(index).items():
            for atom in monomial:
                c *= self.value(atom.name) if isinstance(atom, Symbol) else self._quotient(atom)
            total += c
        return total

    def _quotient(self, quotient: Quotient) -> int:
        return self.index(quotient.number) // self.index(quotient.divisor)

    def satisfies(self, conditions: Iterable[Condition]) -> bool:
        try:
            return all(map(self._holds, conditions))
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


def repaired(witness: Witness, conditions: tuple[Condition, ...]) -> Witness | None:
    """The witness, or one near it, that satisfies all conditions; None where a few steps do not get there."""
    for _ in range(REPAIRS):
        broken = next((c for c in conditions if not witness.satisfies((c,))), None)
        if broken is None:
            return witness
        following = _mended(witness, broken, conditions)
        if following is None:
            return None
        witness = following
    return None


def _mended(witness: Witness, broken: Condition, conditions: tuple[Condition, ...]) -> Witness | None:
    """One symbol moved so that the broken condition holds; the move that breaks least else."""
    wanted = _wanted(broken)
    if wanted is None:
        return None
    index, exactly = wanted
    try:
        gap = -witness.index(index)
    except ZeroDivisionError:
        return None
    best: tuple[int, Witness] | None = None
    for monomial, c in terms_of(index).items():
        if len(monomial) != 1 or not isinstance(monomial[0], Symbol):
            continue
        if exactly and gap % c:
            continue
        step = gap // c if exactly else (-(-gap // c) if c > 0 else gap // c)
        name = monomial[0].name
        moved = Witness(witness.seed, witness.largest, {**witness.told, name: witness.value(name) + step})
        if not moved.satisfies((broken,)):
            continue
        damage = sum(not moved.satisfies((other,)) for other in conditions)
        if best is None or damage < best[0]:
            best = (damage, moved)
    return best[1] if best is not None else None


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

FIRST = tuple(Witness(seed, largest) for seed, largest in enumerate((1, 2, 3, 3, 4, 4, 6, 6, 9, 9, 16, 16)))
