"""A sum is zero exactly where it is zero after multiplying with something positive: a denominator, say."""

from __future__ import annotations

from dataclasses import replace as with_fields

from superopt.ops.index import Poly, Values
from superopt.verify.canonical import sum_key
from superopt.verify.facts import Facts
from superopt.verify.terms import (
    AccessFactor,
    CallFactor,
    Factor,
    Sum,
    Term,
    multiply,
    renamed,
    replace_domain,
    symbols_of,
)


def cleared_of_denominator(terms: Sum, facts: Facts) -> Sum | None:
    """The sum times one of its denominators that is positive whatever the inputs; None where there is none."""
    for t in terms:
        for factor in t.factors:
            found = below(factor)
            if found is not None and symbols_of(found).isdisjoint(t.bound) and is_positive(found, facts):
                return _times(terms, found)
    return None


def below(factor: Factor) -> Sum | None:
    """The denominator, where the factor is 1 over one."""
    if isinstance(factor, CallFactor) and factor.function == "reciprocal":
        return factor.arguments[0]
    return None


def _times(terms: Sum, denominator: Sum) -> Sum:
    key = sum_key(denominator)
    found: list[Term] = []
    for t in terms:
        here = next((f for f in t.factors if (whole := below(f)) is not None and sum_key(whole) == key), None)
        if here is not None:
            found.append(with_fields(t, factors=tuple(f for f in t.factors if f is not here)))
        else:
            found += multiply((t,), tuple(map(renamed, denominator)))
    return tuple(found)


def is_positive(terms: Sum, facts: Facts) -> bool:
    """Above zero for all inputs: nothing in it is negative, and something in it is there everywhere."""
    return all(_not_negative(t, facts) for t in terms) and any(_is_there(t, facts) for t in terms)


def _is_there(t: Term, facts: Facts) -> bool:
    """Whether the term has a summand at all: the first one, where all bound variables are 0, is asked for."""
    first: Values = dict.fromkeys(t.bound, 0)
    return all(facts.entails(c) for c in replace_domain(t.domain, first))


def _not_negative(t: Term, facts: Facts) -> bool:
    sizes = all(facts.entails(Poly({(atom,): 1}) >= 1) for atom, _ in t.scale)
    return t.coefficient > 0 and sizes and all(_is_positive_factor(f, facts) for f in t.factors)


def _is_positive_factor(factor: Factor, facts: Facts) -> bool:
    if isinstance(factor, AccessFactor):
        known = [fact for fact in facts.reals if fact.name == factor.tensor]
        return any(fact.comparison == ">" and fact.value >= 0 for fact in known)
    if not isinstance(factor, CallFactor):
        return False
    if factor.function == "exp":
        return True
    return factor.function in ("reciprocal", "sqrt") and is_positive(factor.arguments[0], facts)
