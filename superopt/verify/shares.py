"""Shares of a whole add up to one: Σ f(m) · 1/Σ f(m) = 1 where the whole is positive, as a softmax's weights do."""

from __future__ import annotations

from dataclasses import replace as with_fields
from fractions import Fraction
from itertools import permutations

from superopt.ops.condition import Condition
from superopt.ops.element import fresh
from superopt.ops.index import Poly, Symbol, atoms_of
from superopt.verify.canonical import term_key
from superopt.verify.denominators import below, is_positive
from superopt.verify.facts import Facts
from superopt.verify.ranges import extent_of
from superopt.verify.terms import Factor, Term, replace, symbols_of, symbols_of_factor


def added_up(term: Term, facts: Facts) -> Term:
    """Without the ranges over which the term is nothing but the shares of a whole."""
    for factor in term.factors:
        whole = below(factor)
        if whole is None or len(whole) != 1 or whole[0].coefficient != 1 or not whole[0].bound:
            continue
        for variable in term.bound:
            rest = _without(term, variable, factor, whole[0])
            if rest is not None and is_positive(whole, facts.and_(*rest.domain)):
                return added_up(_joined(rest, facts), facts)
    return term


def _without(term: Term, variable: Symbol, denominator: Factor, whole: Term) -> Term | None:
    """The term without what it sums over the variable, if that is the whole in the denominator."""
    if variable in symbols_of_factor(denominator) or variable in {atom for atom, _ in term.scale}:
        return None
    summed = tuple(f for f in term.factors if variable in symbols_of_factor(f))
    domain = tuple(c for c in term.domain if variable in c.atoms)
    if not summed or term_key(Term(Fraction(1), (), (variable,), domain, summed)) != term_key(whole):
        return None
    return Term(
        term.coefficient, term.scale, tuple(v for v in term.bound if v != variable),
        tuple(c for c in term.domain if c not in domain),
        tuple(f for f in term.factors if f not in summed and f is not denominator),
    )  # fmt: skip


def _joined(term: Term, facts: Facts) -> Term:
    """a over N and b over d, where nothing is left that tells a·d + b from one variable over N·d, are that one."""
    for high, low in permutations(term.bound, 2):
        extents = [extent_of(v, _about(term, v, other)) for v, other in ((high, low), (low, high))]
        if extents[0] is None or extents[1] is None or {high, low} & {*atoms_of(extents[0]), *atoms_of(extents[1])}:
            continue
        if not all(facts.entails(extent >= 0) for extent in extents if extent is not None):
            continue
        one = fresh("j")
        j, a = Poly({(one,): 1}), Poly({(high,): 1})
        both = {*_about(term, high, low), *_about(term, low, high)}
        bound = (one, *(v for v in term.bound if v not in (high, low)))
        rest = Term(term.coefficient, term.scale, bound, tuple(c for c in term.domain if c not in both), term.factors)
        rest = replace(rest, {low: j - a * extents[1]})
        if high in symbols_of((rest,)):
            continue
        ranges = [c for c in (j >= 0, j < extents[0] * extents[1]) if isinstance(c, Condition)]
        domain = {str(c): c for c in (*ranges, *rest.domain)}
        return with_fields(rest, domain=tuple(domain.values()))
    return term


def _about(term: Term, variable: Symbol, other: Symbol) -> list[Condition]:
    """What the domain says of the variable alone."""
    about = [(c, c.atoms) for c in term.domain]
    return [c for c, symbols in about if variable in symbols and other not in symbols]
