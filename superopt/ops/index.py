"""Sizes and indices: integers, or polynomials with integer coefficients over symbols.

Arithmetic keeps one normal form, so that equal polynomials print and compare alike; a polynomial without symbols is a
plain `int`. Floor division gives an atom of its own, and `a % b` is `a − b·(a // b)`: one kind of atom, not two.
Comparing gives a plain `bool` where no symbol is left and a `Condition` elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from superopt.ops.condition import AtLeastZero, Both, Condition, Not, Zero, both, negate


@dataclass(frozen=True, slots=True)
class Symbol:
    """An unknown integer, known by its name."""

    name: str

    @property
    def key(self) -> tuple[str, str]:
        return ("", self.name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Quotient:
    """⌊number / divisor⌋, where the divisor is at least 1."""

    number: Index
    divisor: Index

    @cached_property
    def key(self) -> tuple[str, str]:
        return ("//", f"⌊({self.number})/({self.divisor})⌋")

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotient) and self.key == other.key

    def __str__(self) -> str:
        return self.key[1]


Atom: TypeAlias = Symbol | Quotient
Monomial: TypeAlias = tuple[Atom, ...]
"""Atoms with repetition, sorted: x·x·y is (x, x, y); 1 is ()."""


class Poly:
    """A polynomial with at least one symbol. Equality of values is `==`, a condition; of form, `same`."""

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        live = [(m, c) for m, c in terms.items() if c]
        if len(live) > 1:
            live.sort(key=lambda t: tuple([a.key for a in t[0]]))
        self.terms: dict[Monomial, int] = dict(live)

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        """Its atoms, those inside quotients included."""
        found: set[Atom] = set()
        for monomial in self.terms:
            for atom in monomial:
                found.add(atom)
                if isinstance(atom, Quotient):
                    found |= atoms_of(atom.number) | atoms_of(atom.divisor)
        return frozenset(found)

    def __add__(self, other: Index) -> Index:
        if isinstance(other, int):
            return self._plus(other)
        terms = dict(self.terms)
        for monomial, c in terms_of(other).items():
            terms[monomial] = terms.get(monomial, 0) + c
        return make(terms)

    def _plus(self, number: int) -> Index:
        """The number's term comes first in the normal form."""
        if not number:
            return self
        terms = dict(self.terms)
        total = terms.pop((), 0) + number
        return _in_order({(): total, **terms} if total else terms)

    def __mul__(self, other: Index) -> Index:
        if isinstance(other, int):
            return _in_order({m: c * other for m, c in self.terms.items()}) if other else 0
        terms: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in terms_of(other).items():
                product = tuple(sorted(m + n, key=lambda a: a.key))
                terms[product] = terms.get(product, 0) + c * d
        return make(terms)

    def __floordiv__(self, other: Index) -> Index:
        return floor_divide(self, other)

    def __rfloordiv__(self, other: Index) -> Index:
        return floor_divide(other, self)

    def __mod__(self, other: Index) -> Index:
        return self - other * floor_divide(self, other)

    def __rmod__(self, other: Index) -> Index:
        return other - self * floor_divide(other, self)

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: Index) -> Index:
        return self + other * -1

    def __rsub__(self, other: Index) -> Index:
        return self * -1 + other

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> Condition | bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not isinstance(other, int | Poly):
            return NotImplemented
        return is_zero(self - other)

    def __ne__(self, other: object) -> Condition | bool:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not isinstance(other, int | Poly):
            return NotImplemented
        return negate(is_zero(self - other))

    def __ge__(self, other: Index) -> Condition | bool:
        return at_least_zero(self - other)

    def __gt__(self, other: Index) -> Condition | bool:
        return at_least_zero(self - other - 1)

    def __le__(self, other: Index) -> Condition | bool:
        return at_least_zero(other - self)

    def __lt__(self, other: Index) -> Condition | bool:
        return at_least_zero(other - self - 1)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __str__(self) -> str:
        return self.key

    @cached_property
    def key(self) -> str:
        parts: list[str] = []
        for monomial, c in self.terms.items():
            names = "·".join(map(str, monomial))
            text = (
                names if c == 1 and names else f"-{names}" if c == -1 and names else f"{c}·{names}" if names else f"{c}"
            )
            parts.append(text)
        return " + ".join(parts).replace("+ -", "- ")

    __repr__ = __str__


Index: TypeAlias = int | Poly


def _in_order(terms: dict[Monomial, int]) -> Poly:
    """Of terms that are in the normal form already, none of them 0."""
    made = Poly.__new__(Poly)
    made.terms = terms
    return made


def symbol(name: str) -> Poly:
    return Poly({(Symbol(name),): 1})


def make(terms: Mapping[Monomial, int]) -> Index:
    """A polynomial, or the number it is."""
    live = {m: c for m, c in terms.items() if c}
    if not live:
        return 0
    if len(live) == 1 and () in live:
        return live[()]
    return Poly(live)


def terms_of(index: Index) -> Mapping[Monomial, int]:
    return index.terms if isinstance(index, Poly) else ({(): index} if index else {})


def atoms_of(index: Index) -> frozenset[Atom]:
    return index.atoms if isinstance(index, Poly) else frozenset()


def same(a: Index, b: Index) -> bool:
    """Equal in form, hence for all values."""
    difference = a - b
    return isinstance(difference, int) and difference == 0


def floor_divide(number: Index, divisor: Index) -> Index:
    """⌊number / divisor⌋ for a divisor of at least 1; what divides exactly is taken out."""
    if isinstance(divisor, int) and divisor == 0:
        raise ZeroDivisionError(f"{number} divided by 0")
    if isinstance(number, int) and isinstance(divisor, int):
        return number // divisor
    if isinstance(divisor, int) and divisor == 1:
        return number
    whole, rest = divide_terms(number, divisor)
    if isinstance(rest, int) and rest == 0:
        return whole
    if isinstance(rest, int) and isinstance(divisor, int):
        return whole + rest // divisor
    return whole + Poly({(Quotient(rest, divisor),): 1})


def divide_terms(number: Index, divisor: Index) -> tuple[Index, Index]:
    """(q, r) with number = q·divisor + r, by terms that the divisor's only or leading term divides."""
    lead, factor = _leading(divisor)
    whole: Index = 0
    rest = number
    for _ in range(8):
        found: dict[Monomial, int] = {}
        for monomial, c in terms_of(rest).items():
            left = _without(monomial, lead)
            if left is not None and c // factor:
                found[left] = found.get(left, 0) + c // factor
        if not found:
            break
        step = make(found)
        following = rest - step * divisor
        if _weight(following) >= _weight(rest):
            break
        whole, rest = whole + step, following
    return whole, rest


def _leading(divisor: Index) -> tuple[Monomial, int]:
    """The term of highest degree; for a number, the number."""
    monomial, c = max(terms_of(divisor).items(), key=lambda t: (len(t[0]), tuple(a.key for a in t[0])))
    return monomial, c


def _without(monomial: Monomial, lead: Monomial) -> Monomial | None:
    """The monomial divided by `lead`, where it divides."""
    left = list(monomial)
    for atom in lead:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _weight(index: Index) -> int:
    return sum(abs(c) * (1 + len(m)) for m, c in terms_of(index).items())


Values: TypeAlias = Mapping[Any, Index]
"""What to put in place of atoms: symbols, or whole quotients."""


def substitute(index: Index, values: Values) -> Index:
    """Atoms replaced, quotients recomputed."""
    if isinstance(index, int) or index.atoms.isdisjoint(values):
        return index
    total: Index = 0
    for monomial, c in index.terms.items():
        product: Index = c
        for atom in monomial:
            product = product * _substitute_atom(atom, values)
        total = total + product
    return total


def _substitute_atom(atom: Atom, values: Values) -> Index:
    if atom in values:
        return values[atom]
    if isinstance(atom, Symbol):
        return Poly({(atom,): 1})
    return floor_divide(substitute(atom.number, values), substitute(atom.divisor, values))


def product(sizes: tuple[Index, ...]) -> Index:
    total: Index = 1
    for size in sizes:
        total = total * size
    return total


def substitute_condition(condition: Condition | bool, values: Values) -> Condition | bool:
    if isinstance(condition, AtLeastZero):
        return at_least_zero(substitute(condition.index, values))
    if isinstance(condition, Zero):
        return is_zero(substitute(condition.index, values))
    if isinstance(condition, Not):
        return negate(substitute_condition(condition.of, values))
    if isinstance(condition, Both):
        result: Condition | bool = True
        for part in condition.parts:
            result = both(result, substitute_condition(part, values))
        return result
    return condition


def at_least_zero(index: Index) -> Condition | bool:
    return index >= 0 if isinstance(index, int) else AtLeastZero(index)


def is_zero(index: Index) -> Condition | bool:
    return index == 0 if isinstance(index, int) else Zero(index)
