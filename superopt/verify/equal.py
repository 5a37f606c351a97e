"""Two sums are equal when their terms cancel.

A term is brought onto another by a bijection of bound variables, found by pairing accesses and solving for the
variables, and confirmed by Z3 or by form. Terms with one summand form a group; the group vanishes when, at every point,
the coefficients of the domains that contain it add up to zero. Functions are equal when their arguments are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import replace as with_fields
from fractions import Fraction
from itertools import permutations

from superopt.ops.condition import Condition
from superopt.ops.index import Index, Poly, Quotient, Symbol, Values, atoms_of, substitute, terms_of
from superopt.verify.denominators import cleared_of_denominator
from superopt.verify.facts import Facts, count_is_zero, same_union
from superopt.verify.order import equal_by_order
from superopt.verify.simplify import collect, simplify
from superopt.verify.terms import (
    AccessFactor,
    Alternative,
    CallFactor,
    ExtremeFactor,
    Factor,
    Sum,
    Term,
    replace_domain,
    replace_factor,
    replace_sum,
    symbols_of,
    times,
)

MOST_PAIRINGS = 400
MOST_VALUES = 4
CLEARED = 3
"""Denominators that are multiplied out, at most."""
MINUS = Fraction(-1)


def equal(a: Sum, b: Sum, facts: Facts) -> bool:
    """Whether two sums have one value wherever the facts hold. "No" means that no proof was found."""
    return _cancels(simplify(a, facts), simplify(b, facts), facts)


def equal_in_cases(a: Sum, b: Sum, facts: Facts, depth: int = 2) -> bool:
    """As `equal`; where a quotient of free symbols has few possible values, each in turn."""
    simpler = simplify(a, facts), simplify(b, facts)
    if _cancels(*simpler, facts):
        return True
    cases = _cases(simpler, (a, b), facts) if depth else None
    return cases is not None and all(f.contradictory or equal_in_cases(a, b, f, depth - 1) for f in cases)


def _cancels(a: Sum, b: Sum, facts: Facts) -> bool:
    return _is_zero(collect(a + times(b, MINUS)), facts, CLEARED)


def _cases(simpler: tuple[Sum, Sum], written: tuple[Sum, Sum], facts: Facts) -> list[Facts] | None:
    """By the value of a quotient: one that is left once the sums are simpler, else any of theirs."""
    bound = {v for side in written for t in side for v in t.bound}
    sums = [(*a, *b) for a, b in (simpler, written)]
    quotients = (sorted((q for q in symbols_of(s) if isinstance(q, Quotient)), key=str) for s in sums)
    for quotient in dict.fromkeys(q for found in quotients for q in found):
        number, divisor = quotient.number, quotient.divisor
        if not atoms_of(Poly({(quotient,): 1})).isdisjoint(bound) or not facts.entails(number >= 0):
            continue
        for count in range(2, MOST_VALUES + 1):
            if facts.entails(number < divisor * count):
                return [facts.and_(number >= divisor * m, number < divisor * (m + 1)) for m in range(count)]
    return None


def _is_zero(terms: Sum, facts: Facts, rounds: int) -> bool:
    if _cancel(list(terms), facts):
        return True
    cleared = cleared_of_denominator(terms, facts) if rounds else None
    if cleared is not None and _is_zero(collect(simplify(cleared, facts)), facts, rounds - 1):
        return True
    summands = _under_one_sum(terms, facts)
    if summands is None:
        return False
    inside = facts.and_(*terms[0].domain)
    return _is_zero(collect(simplify(summands, inside)), inside, rounds)


def _under_one_sum(terms: Sum, facts: Facts) -> Sum | None:
    """What is added up, where all terms are sums over the same points; None where they are not.

    Where that is zero at every point, so are the sums. Asked for extremes alone: what has none cancels term by term."""
    if len(terms) < 2 or not all(t.bound for t in terms) or not any(_has_extreme(t) for t in terms):
        return None
    first, *others = terms
    found = [with_fields(first, bound=(), domain=())]
    for t in others:
        values = next(_onto_same_points(first, t, facts), None)
        if values is None:
            return None
        factors = tuple(replace_factor(f, values) for f in t.factors)
        found.append(with_fields(t, bound=(), domain=(), factors=factors))
    return tuple(found)


def _has_extreme(t: Term) -> bool:
    return any(isinstance(f, ExtremeFactor) for f in t.factors)


def _onto_same_points(first: Term, t: Term, facts: Facts) -> Iterator[Values]:
    """Bijections onto the first term's points, read off tensors that both read."""
    if len(t.bound) != len(first.bound):
        return
    here = facts.and_(*first.domain)
    pairs = [
        (f, g)
        for f in first.factors
        for g in t.factors
        if isinstance(f, AccessFactor) and isinstance(g, AccessFactor) and _head(f) == _head(g)
    ]
    for f, g in pairs:
        solved = solve(list(zip(f.indices, g.indices, strict=True)), t.bound)
        for values in _completed(solved, t.bound, first.bound):
            if not _is_bijection(values, t.bound, first.bound):
                continue
            domain = replace_domain(t.domain, values)
            there = facts.and_(*domain)
            if all(map(here.entails, domain)) and all(map(there.entails, first.domain)):
                yield values


def _cancel(terms: list[Term], facts: Facts) -> bool:
    """Whether the terms fall into groups that vanish."""
    left: list[Term] = []
    while terms:
        reference, *others = terms
        group = [(reference.coefficient, reference.domain)]
        terms = []
        for t in others:
            moved = _moved_onto(reference, t, facts)
            if moved is None:
                terms.append(t)
            else:
                group.append((t.coefficient, moved))
        if not _vanishes(group, facts):
            left.append(reference)
            if len(group) > 1:
                return False
    return not left or equal_by_order(tuple(left), facts, lambda x, y: equal(x, y, facts))


def _vanishes(group: list[tuple[Fraction, tuple[Condition, ...]]], facts: Facts) -> bool:
    if len(group) == 1:
        return facts.and_(*group[0][1]).contradictory
    unit = math.lcm(*(c.denominator for c, _ in group))
    return count_is_zero(facts, [(int(c * unit), domain) for c, domain in group])


def _moved_onto(reference: Term, t: Term, facts: Facts) -> tuple[Condition, ...] | None:
    """The domain of `t` in the variables of `reference`, where both have one summand."""
    if reference.scale != t.scale or len(reference.bound) != len(t.bound):
        return None
    for values in bijections(reference.factors, reference.bound, t.factors, t.bound):
        domain = replace_domain(t.domain, values)
        moved = [replace_factor(f, values) for f in t.factors]
        here, there = facts.and_(*reference.domain), facts.and_(*domain)
        if _same_factors(list(reference.factors), moved, here) and (
            {str(c) for c in domain} == {str(c) for c in reference.domain}
            or _same_factors(list(reference.factors), moved, there)
        ):
            return domain
    return None


def _same_factors(left: list[Factor], right: list[Factor], facts: Facts) -> bool:
    """Whether the products are equal factor by factor, in some order."""
    if not left:
        return not right
    first, rest = left[0], left[1:]
    for k, candidate in enumerate(right):
        if _head(candidate) == _head(first) and same_factor(first, candidate, facts):
            return _same_factors(rest, right[:k] + right[k + 1 :], facts)
    return False


def same_factor(a: Factor, b: Factor, facts: Facts) -> bool:
    if isinstance(a, AccessFactor) and isinstance(b, AccessFactor):
        return a.tensor == b.tensor and all(facts.equal(i, j) for i, j in zip(a.indices, b.indices, strict=True))
    if isinstance(a, CallFactor) and isinstance(b, CallFactor):
        return a.function == b.function and all(
            equal(x, y, facts) for x, y in zip(a.arguments, b.arguments, strict=True)
        )
    if isinstance(a, ExtremeFactor) and isinstance(b, ExtremeFactor):
        return _same_extreme(a, b, facts)
    return False


def _head(factor: Factor) -> tuple[str, int]:
    if isinstance(factor, AccessFactor):
        return (factor.tensor, len(factor.indices))
    if isinstance(factor, CallFactor):
        return (f"{factor.function}()", len(factor.arguments))
    return ("max{}", 0)


@dataclass
class _Group:
    """Alternatives of both sides that have one value, as domains in the variables of the first."""

    reference: Alternative
    sides: tuple[list[tuple[Condition, ...]], list[tuple[Condition, ...]]]


def _same_extreme(a: ExtremeFactor, b: ExtremeFactor, facts: Facts) -> bool:
    """Every alternative is there on both sides, over the same points; once or twice is all the same."""
    groups: list[_Group] = []
    for side, alternatives in enumerate((a.alternatives, b.alternatives)):
        for alternative in alternatives:
            for group in groups:
                moved = _alternative_onto(group.reference, alternative, facts)
                if moved is not None:
                    group.sides[side].append(moved)
                    break
            else:
                groups.append(_Group(alternative, ([], [])))
                groups[-1].sides[side].append(alternative.domain)
    if all(same_union(facts, *group.sides) for group in groups):
        return True
    whole: Sum = (Term(Fraction(1), factors=(a,)), Term(MINUS, factors=(b,)))
    return equal_by_order(whole, facts, lambda x, y: equal(x, y, facts))


def _alternative_onto(reference: Alternative, other: Alternative, facts: Facts) -> tuple[Condition, ...] | None:
    if len(reference.bound) != len(other.bound):
        return None
    for values in _value_bijections(reference, other):
        domain = replace_domain(other.domain, values)
        value = replace_sum(other.value, values)
        if equal(reference.value, value, facts.and_(*reference.domain)) and equal(
            reference.value, value, facts.and_(*domain)
        ):
            return domain
    return None


def _value_bijections(reference: Alternative, other: Alternative) -> Iterator[Values]:
    if not reference.bound:
        yield {}
        return
    for t in reference.value:
        for u in other.value:
            yield from bijections(t.factors, reference.bound, u.factors, other.bound)


def bijections(
    reference: tuple[Factor, ...], variables: tuple[Symbol, ...], factors: tuple[Factor, ...], bound: tuple[Symbol, ...]
) -> Iterator[Values]:
    """Ways to express `bound` in `variables` under which accesses may agree; each is a bijection on the integers."""
    if sorted(map(_head, reference)) != sorted(map(_head, factors)):
        return
    if not bound:
        yield {}
        return
    tried: set[str] = set()
    accesses = [f for f in reference if isinstance(f, AccessFactor)]
    others = [f for f in factors if isinstance(f, AccessFactor)]
    for count, order in enumerate(permutations(range(len(others)))):
        if count == MOST_PAIRINGS:
            return
        pairs = [(f, others[k]) for f, k in zip(accesses, order, strict=True)]
        if any(_head(f) != _head(g) for f, g in pairs):
            continue
        solved = solve([(i, j) for f, g in pairs for i, j in zip(f.indices, g.indices, strict=True)], bound)
        for values in _completed(solved, bound, variables):
            key = str(sorted((k.name, str(v)) for k, v in values.items()))
            if key not in tried and _is_bijection(values, bound, variables):
                tried.add(key)
                yield values


def solve(equations: list[tuple[Index, Index]], bound: tuple[Symbol, ...]) -> dict[Symbol, Index]:
    """Values of bound variables of the right sides that make the sides equal, as far as they can be read off."""
    values: dict[Symbol, Index] = {}
    progress = True
    while progress:
        progress = False
        for left, right in equations:
            open_ = [v for v in bound if v not in values]
            difference = substitute(right, values) - left
            present = [v for v in open_ if v in atoms_of(difference)]
            if len(present) == 1:
                value = _solve_for(present[0], difference)
                if value is not None:
                    values[present[0]] = value
                    progress = True
    return values


def _solve_for(variable: Symbol, difference: Index) -> Index | None:
    """v with c·g·v + R = 0, where the product of atoms g and the number c divide R."""
    cofactors = [(m, c) for m, c in terms_of(difference).items() if variable in m]
    if len(cofactors) != 1:
        return None
    monomial, c = cofactors[0]
    shared = list(monomial)
    shared.remove(variable)
    if variable in shared:
        return None
    value: Index = 0
    for m, d in terms_of(difference).items():
        if m == monomial:
            continue
        left = list(m)
        for atom in shared:
            if atom not in left:
                return None
            left.remove(atom)
        if d % c:
            return None
        value = value + Poly({tuple(left): -(d // c)}) if left else value - d // c
    return value if variable not in atoms_of(value) else None


def _completed(
    solved: dict[Symbol, Index], bound: tuple[Symbol, ...], variables: tuple[Symbol, ...]
) -> Iterator[dict[Symbol, Index]]:
    """Variables that no access fixed are paired with the reference's own, in every order."""
    open_ = [v for v in bound if v not in solved]
    taken = {a for value in solved.values() for a in atoms_of(value)}
    free = [v for v in variables if v not in taken]
    if not open_:
        yield solved
        return
    for count, order in enumerate(permutations(free, len(open_))):
        if count == MOST_PAIRINGS:
            return
        yield {**solved, **{v: Poly({(w,): 1}) for v, w in zip(open_, order, strict=True)}}


def _is_bijection(values: dict[Symbol, Index], bound: tuple[Symbol, ...], variables: tuple[Symbol, ...]) -> bool:
    """Affine with integer coefficients and determinant ±1."""
    rows: list[list[Fraction]] = []
    for v in bound:
        row: list[Fraction] = []
        for w in variables:
            uses = [(m, c) for m, c in terms_of(values[v]).items() if w in m]
            if any(len(m) > 1 for m, _ in uses):
                return False
            row.append(Fraction(sum(c for _, c in uses)))
        if any(
            not isinstance(a, Symbol) and not atoms_of(Poly({(a,): 1})).isdisjoint(variables)
            for a in atoms_of(values[v])
        ):
            return False
        rows.append(row)
    return abs(_determinant(rows)) == 1


def _determinant(rows: list[list[Fraction]]) -> Fraction:
    rows = [list(r) for r in rows]
    total = Fraction(1)
    for k in range(len(rows)):
        pivot = next((r for r in range(k, len(rows)) if rows[r][k]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != k:
            rows[k], rows[pivot], total = rows[pivot], rows[k], -total
        total *= rows[k][k]
        for r in range(k + 1, len(rows)):
            factor = rows[r][k] / rows[k][k]
            rows[r] = [x - factor * y for x, y in zip(rows[r], rows[k], strict=True)]
    return total
