"""Terms made simpler by what is known where they live; nothing here changes a value.

⌊x/d⌋              0 where 0 ≤ x < d, and so on; a range over N·d read through ⌊k/d⌋ becomes two ranges
sums               over one point, or over a range that the summand does not mention, done
exponentials       e^a · e^b = e^(a+b), so that a term has at most one; 1/e^a = e^(−a)
reciprocals        numbers, sizes and exponentials that do not depend on the inner sum move out (all are positive)
shares             of a whole add up to one
like terms         added up
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace as with_fields
from fractions import Fraction

from superopt.ops.condition import AtLeastZero, Condition, Zero
from superopt.ops.element import fresh
from superopt.ops.index import Index, Poly, Quotient, Symbol, atoms_of, divide_terms, floor_divide, same, terms_of
from superopt.verify.canonical import term_key, text_key
from superopt.verify.extremes import extreme, without_unused
from superopt.verify.facts import Facts
from superopt.verify.ranges import extent_of
from superopt.verify.reciprocals import reciprocal
from superopt.verify.shares import added_up
from superopt.verify.terms import (
    AccessFactor,
    Alternative,
    CallFactor,
    ExtremeFactor,
    Factor,
    Sum,
    Term,
    alone,
    multiply,
    number_of,
    of_size,
    renamed,
    replace,
    symbols_of,
    symbols_of_factor,
)

MINUS = Fraction(-1)
ROUNDS = 12


def simplify(terms: Sum, facts: Facts) -> Sum:
    """The same sum in simpler terms, where the facts hold."""
    found: list[Term] = []
    for t in terms:
        found += simplify_term(t, facts)
    return collect(tuple(found))


def collect(terms: Sum) -> Sum:
    """Terms that differ only in their coefficient, added up."""
    return _added_up(_added_up(terms, text_key), term_key)


def _added_up(terms: Sum, key_of: Callable[[Term], str]) -> Sum:
    totals: dict[str, Term] = {}
    for t in terms:
        key = key_of(t)
        before = totals[key].coefficient if key in totals else Fraction(0)
        totals[key] = with_fields(t, coefficient=t.coefficient + before)
    return tuple(t for t in totals.values() if t.coefficient)


def simplify_term(term: Term, facts: Facts) -> Sum:
    for _ in range(ROUNDS):
        inside = facts.and_(*term.domain)
        if inside.contradictory:
            return ()
        changed = _without_quotient(term, inside) or _one_point(term) or _split_range(term, inside)
        if changed is None:
            break
        term = changed
    counted = _count_unused(term, facts)
    if counted is not None:
        return simplify(counted, facts)
    return _simplify_factors(term, facts.and_(*term.domain))


def _without_quotient(term: Term, facts: Facts) -> Term | None:
    """⌊x/d⌋ = m wherever m·d ≤ x < (m + 1)·d, tried for m = 0, −1, 1."""
    quotients = sorted((a for a in symbols_of((term,)) if isinstance(a, Quotient)), key=lambda q: len(str(q)))
    for quotient in quotients:
        if not facts.entails(quotient.divisor >= 1):
            continue
        for m in (0, -1, 1):
            rest = quotient.number - quotient.divisor * m
            if facts.entails(rest >= 0) and facts.entails(rest < quotient.divisor):
                return replace(term, {quotient: m})
        shorter = _without_factor(quotient, facts)
        if shorter is not None:
            return replace(term, {quotient: shorter})
    return None


def _without_factor(quotient: Quotient, facts: Facts) -> Index | None:
    """⌊(f·a + r)/(f·d)⌋ = ⌊a/d⌋ for 0 ≤ r < f."""
    terms = terms_of(quotient.divisor)
    if len(terms) != 1 or len(monomial := next(iter(terms))) < 2:
        return None
    for atom in dict.fromkeys(monomial):
        factor = Poly({(atom,): 1})
        whole, _ = divide_terms(quotient.divisor, factor)
        multiple, _ = divide_terms(_without_remainders(quotient.number, factor), factor)
        rest = quotient.number - multiple * factor
        if isinstance(multiple, int) and multiple == 0:
            continue
        if facts.entails(rest >= 0) and facts.entails(rest < factor):
            return floor_divide(multiple, whole)
    return None


def _without_remainders(number: Index, factor: Poly) -> Index:
    """Without what belongs to a remainder: -f·⌊x/f⌋ of x - f·⌊x/f⌋."""
    found = number
    for atom in atoms_of(number):
        if isinstance(atom, Quotient) and same(atom.divisor, factor):
            product = factor * Poly({(atom,): 1})
            (monomial,) = terms_of(product)
            found = found + product if terms_of(number).get(monomial) == -1 else found
    return found


def _one_point(term: Term) -> Term | None:
    """A bound variable that can have one value only takes it."""
    for variable in term.bound:
        value = _forced(variable, term.domain)
        if value is not None:
            rest = with_fields(term, bound=tuple(v for v in term.bound if v != variable))
            return replace(rest, {variable: value})
    return None


def _forced(variable: Symbol, domain: tuple[Condition, ...]) -> Index | None:
    lower: list[Index] = []
    upper: list[Index] = []
    for condition in domain:
        if not isinstance(condition, Zero | AtLeastZero):
            continue
        c = condition.index.terms.get((variable,), 0)
        bound = condition.index - Poly({(variable,): c}) if c else 0
        if abs(c) != 1 or variable in atoms_of(bound):
            continue
        if isinstance(condition, Zero):
            return bound * -c
        (lower if c == 1 else upper).append(bound * -c)
    return next((low for low in lower for up in upper if same(low, up)), None)


def _split_range(term: Term, facts: Facts) -> Term | None:
    """k over 0 … N·d − 1, read through ⌊k/d⌋, is a·d + b with a over N and b over d."""
    for quotient in symbols_of((term,)):
        if not isinstance(quotient, Quotient) or not facts.entails(quotient.divisor >= 1):
            continue
        for variable in term.bound:
            if not same(quotient.number, Poly({(variable,): 1})):
                continue
            outer = _times_divisor(variable, quotient.divisor, term.domain)
            if outer is None:
                continue
            high, low = fresh("a"), fresh("b")
            a, b = Poly({(high,): 1}), Poly({(low,): 1})
            ranges = (a >= 0, a < outer, b >= 0, b < quotient.divisor)
            replaced = replace(term, {quotient: a, variable: a * quotient.divisor + b})
            return Term(
                term.coefficient, term.scale, (*(v for v in term.bound if v != variable), high, low),
                (*(c for c in ranges if isinstance(c, Condition)), *replaced.domain), replaced.factors,
            )  # fmt: skip
    return None


def _times_divisor(variable: Symbol, divisor: Index, domain: tuple[Condition, ...]) -> Index | None:
    """N, where the domain bounds the variable by exactly 0 and N·divisor − 1."""
    k = Poly({(variable,): 1})
    starts_at_zero = any(isinstance(c, AtLeastZero) and same(c.index, k) for c in domain)
    for condition in domain:
        if starts_at_zero and isinstance(condition, AtLeastZero) and condition.index.terms.get((variable,)) == -1:
            whole, rest = divide_terms(condition.index + k + 1, divisor)
            if same(rest, 0) and variable not in atoms_of(whole):
                return whole
    return None


def _count_unused(term: Term, facts: Facts) -> Sum | None:
    """A sum over a range that the summand does not mention multiplies by its length."""
    for variable in term.bound:
        if any(variable in symbols_of_factor(f) for f in term.factors):
            continue
        about = [c for c in term.domain if variable in c.atoms]
        extent = extent_of(variable, about)
        if extent is None or not facts.entails(extent >= 0):
            continue
        rest = Term(
            term.coefficient, term.scale, tuple(v for v in term.bound if v != variable),
            tuple(c for c in term.domain if c not in about), term.factors,
        )  # fmt: skip
        return multiply(of_size(extent), (rest,))
    return None


def _simplify_factors(term: Term, facts: Facts) -> Sum:
    """Functions of simplified arguments; exponentials gathered into one."""
    result: Sum = (with_fields(term, factors=()),)
    exponent: Sum = ()
    for factor in term.factors:
        if isinstance(factor, CallFactor) and factor.function == "exp":
            exponent += factor.arguments[0]
        else:
            result = multiply(result, _simplify_factor(factor, facts))
    inverse: list[Term] = []
    for t in result:
        kept: list[Factor] = []
        more = exponent
        for factor in t.factors:
            if isinstance(factor, CallFactor) and factor.function == "exp":
                more += factor.arguments[0]
            else:
                kept.append(factor)
        power = simplify(tuple(map(renamed, more)), facts) if more else ()
        if power:
            kept.append(CallFactor("exp", (power,)))
        inverse.append(added_up(with_fields(t, factors=tuple(kept)), facts))
    return tuple(inverse)


def _simplify_factor(factor: Factor, facts: Facts) -> Sum:
    if isinstance(factor, AccessFactor):
        return alone(factor)
    if isinstance(factor, ExtremeFactor):
        simpler = [
            Alternative(a.bound, a.domain, simplify(a.value, facts.and_(*a.domain))) for a in factor.alternatives
        ]
        return extreme(tuple(without_unused(a, facts) for a in simpler))
    arguments = tuple(simplify(a, facts) for a in factor.arguments)
    if factor.function == "reciprocal":
        return reciprocal(arguments[0], facts)
    number = number_of(arguments[0]) if len(arguments) == 1 else None
    if factor.function == "sqrt" and number is not None and number >= 0:
        root = Fraction(math.isqrt(number.numerator), math.isqrt(number.denominator))
        if root * root == number:
            return (Term(root),)
    if factor.function == "log" and number == 1:
        return ()
    return alone(CallFactor(factor.function, arguments))
