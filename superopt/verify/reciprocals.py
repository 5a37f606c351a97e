"""1 over a sum, with everything positive that can be taken out of it taken out."""

from __future__ import annotations

import math
from dataclasses import replace as with_fields
from fractions import Fraction

from superopt.ops.index import Atom, Poly, Symbol
from superopt.verify.canonical import sum_key
from superopt.verify.facts import Facts
from superopt.verify.terms import CallFactor, Scale, Sum, Term, alone, multiply, number_of, symbols_of, times

MINUS = Fraction(-1)


def reciprocal(terms: Sum, facts: Facts) -> Sum:
    """The reciprocal of a simplified sum."""
    if len(terms) == 1 and not terms[0].bound and not terms[0].domain:
        whole = _inverted(terms[0], facts)
        if whole is not None:
            return whole
    coefficient, scale = _content(terms, facts)
    upside_down = tuple((atom, -e) for atom, e in scale)
    rest, shift = _exponential_content(times(terms, 1 / coefficient, upside_down))
    outside: Sum = (Term(1 / coefficient, upside_down),)
    if shift:
        outside = multiply(outside, alone(CallFactor("exp", (times(shift, MINUS),))))
    if number_of(rest) == 1:
        return outside
    return multiply(outside, alone(CallFactor("reciprocal", (rest,))))


def _inverted(term: Term, facts: Facts) -> Sum | None:
    """1 over one product, where every factor has a reciprocal of its own: sizes, e^a, and 1/a."""
    if not all(_is_positive(atom, facts) for atom, _ in term.scale):
        return None
    result: Sum = (Term(1 / term.coefficient, tuple((atom, -e) for atom, e in term.scale)),)
    for factor in term.factors:
        if not isinstance(factor, CallFactor):
            return None
        if factor.function == "exp":
            result = multiply(result, alone(CallFactor("exp", (times(factor.arguments[0], MINUS),))))
        elif factor.function == "reciprocal":
            result = multiply(result, factor.arguments[0])
        else:
            return None
    return result


def _is_positive(atom: Atom, facts: Facts) -> bool:
    return facts.entails(Poly({(atom,): 1}) >= 1)


def _content(terms: Sum, facts: Facts) -> tuple[Fraction, Scale]:
    """The greatest positive number and the positive sizes that every term has as a factor."""
    if not terms:
        return Fraction(1), ()
    numerator = math.gcd(*(t.coefficient.numerator for t in terms))
    denominator = math.lcm(*(t.coefficient.denominator for t in terms))
    shared = dict(terms[0].scale)
    for t in terms[1:]:
        exponents = dict(t.scale)
        shared = {a: e for a, e in shared.items() if exponents.get(a) == e}
    positive = [(a, e) for a, e in shared.items() if _is_positive(a, facts)]
    return Fraction(numerator, denominator), tuple(sorted(positive, key=lambda pair: pair[0].key))


def _exponential_content(terms: Sum) -> tuple[Sum, Sum]:
    """(rest, a) with terms = e^a · rest, where `a` is what all exponents share and no inner sum reaches."""
    parts: list[tuple[Sum, Sum]] = []
    if not terms:
        return terms, ()
    for t in terms:
        powers = [f for f in t.factors if isinstance(f, CallFactor) and f.function == "exp"]
        if len(powers) != 1:
            return terms, ()
        inner, outer = _by_dependence(powers[0].arguments[0], t.bound)
        parts.append((inner, outer))
    shared = parts[0][1]
    if not shared or any(sum_key(outer) != sum_key(shared) for _, outer in parts):
        return terms, ()
    rest: list[Term] = []
    for t, (inner, _) in zip(terms, parts, strict=True):
        kept = tuple(f for f in t.factors if not (isinstance(f, CallFactor) and f.function == "exp"))
        rest.append(with_fields(t, factors=(*kept, CallFactor("exp", (inner,))) if inner else kept))
    return tuple(rest), shared


def _by_dependence(terms: Sum, bound: tuple[Symbol, ...]) -> tuple[Sum, Sum]:
    """Terms that mention the bound variables, and those that do not."""
    inner = tuple(t for t in terms if not symbols_of((t,)).isdisjoint(bound))
    outer = tuple(t for t in terms if symbols_of((t,)).isdisjoint(bound))
    return inner, outer
