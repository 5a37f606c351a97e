"""Symbols that equations among the facts say are the same: k·m = k·i with k ≥ 1 makes m and i one."""

from __future__ import annotations

from collections.abc import Iterable

from superopt.ops.condition import AtLeastZero, Condition, Zero
from superopt.ops.index import Atom, Index, Monomial, Poly, Symbol, Values, terms_of


def renamings(conditions: Iterable[Condition]) -> Values:
    """A symbol for each that is equal to it; names are given once, so that none is replaced by one that is replaced."""
    conditions = tuple(conditions)
    found: dict[Atom, Index] = {}
    kept: set[Atom] = set()
    positive = {atom for c in conditions if (atom := _at_least_one(c)) is not None}
    for condition in conditions:
        pair = _pair(condition.index, positive) if isinstance(condition, Zero) else None
        if pair is None:
            continue
        one, other = pair
        if one in found or other in found or other in kept:
            continue
        found[other] = Poly({(one,): 1})
        kept.add(one)
    return found


def _at_least_one(condition: Condition) -> Atom | None:
    if not isinstance(condition, AtLeastZero):
        return None
    terms = dict(terms_of(condition.index))
    least = -terms.pop((), 0)
    if least < 1 or len(terms) != 1:
        return None
    ((monomial, c),) = terms.items()
    return monomial[0] if len(monomial) == 1 and c == 1 else None


def _pair(index: Index, positive: set[Atom]) -> tuple[Symbol, Symbol] | None:
    """(a, b), where the polynomial is ± p·(a − b) with p a product of positive atoms."""
    terms = terms_of(index)
    if len(terms) != 2 or sum(terms.values()) or not {1, -1} >= set(terms.values()):
        return None
    first, second = (_without_shared(m, other) for m, other in _both_ways(*terms))
    if len(first) != 1 or len(second) != 1 or not isinstance(first[0], Symbol) or not isinstance(second[0], Symbol):
        return None
    shared = [*next(iter(terms))]
    shared.remove(first[0])
    return (first[0], second[0]) if all(atom in positive for atom in shared) else None


def _both_ways(a: Monomial, b: Monomial) -> tuple[tuple[Monomial, Monomial], tuple[Monomial, Monomial]]:
    return (a, b), (b, a)


def _without_shared(monomial: Monomial, other: Monomial) -> Monomial:
    rest = list(other)
    found: list[Atom] = []
    for atom in monomial:
        if atom in rest:
            rest.remove(atom)
        else:
            found.append(atom)
    return tuple(found)
