"""Terms made simpler by what is known where they live; nothing here changes a value.

⌊x/d⌋              0 where 0 ≤ x < d, and so on; a range over N·d read through ⌊k/d⌋ becomes two ranges
sums               over one point, or over a range that the summand does not mention, done
exponentials       e^a · e^b = e^(a+b), so that a term has at most one; 1/e^a = e^(−a)
reciprocals        numbers, sizes and exponentials that do not depend on the inner sum move out (all are positive)
like terms         added up
"""

from __future__ import annotations

import math
from dataclasses import replace as with_fields
from fractions import Fraction

from superopt.ops.condition import AtLeastZero, Condition, Zero
from superopt.ops.element import fresh
from superopt.ops.index import Atom, Index, Poly, Quotient, Symbol, atoms_of, divide_terms, same
from superopt.verify.canonical import sum_key, term_key
from superopt.verify.facts import Facts
from superopt.verify.terms import (
    AccessFactor,
    Alternative,
    CallFactor,
    ExtremeFactor,
    Factor,
    Scale,
    Sum,
    Term,
    multiply,
    of_size,
    renamed,
    replace,
    symbols_of,
    symbols_of_condition,
    symbols_of_factor,
    times,
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
    totals: dict[str, Term] = {}
    for t in terms:
        key = term_key(t)
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
    return None


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
        about = [c for c in term.domain if variable in symbols_of_condition(c)]
        extent = _extent(variable, about)
        if extent is None or not facts.entails(extent >= 0):
            continue
        rest = Term(
            term.coefficient, term.scale, tuple(v for v in term.bound if v != variable),
            tuple(c for c in term.domain if c not in about), term.factors,
        )  # fmt: skip
        return multiply(of_size(extent), (rest,))
    return None


def _extent(variable: Symbol, about: list[Condition]) -> Index | None:
    """E, where the conditions on the variable are 0 ≤ k and k ≤ E − 1 and no others."""
    k = Poly({(variable,): 1})
    if len(about) != 2 or not all(isinstance(c, AtLeastZero) for c in about):
        return None
    indices = [c.index for c in about if isinstance(c, AtLeastZero)]
    if not any(same(i, k) for i in indices):
        return None
    other = indices[1] if same(indices[0], k) else indices[0]
    extent = other + k + 1
    return None if variable in atoms_of(extent) else extent


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
        inverse.append(with_fields(t, factors=tuple(kept)))
    return tuple(inverse)


def _simplify_factor(factor: Factor, facts: Facts) -> Sum:
    if isinstance(factor, AccessFactor):
        return _alone(factor)
    if isinstance(factor, ExtremeFactor):
        simpler = [
            Alternative(a.bound, a.domain, simplify(a.value, facts.and_(*a.domain))) for a in factor.alternatives
        ]
        return _extreme(tuple(_without_unused(a, facts) for a in simpler))
    arguments = tuple(simplify(a, facts) for a in factor.arguments)
    if factor.function == "reciprocal":
        return reciprocal(arguments[0], facts)
    number = _number(arguments[0]) if len(arguments) == 1 else None
    if factor.function == "sqrt" and number is not None and number >= 0:
        root = Fraction(math.isqrt(number.numerator), math.isqrt(number.denominator))
        if root * root == number:
            return (Term(root),)
    if factor.function == "log" and number == 1:
        return ()
    return _alone(CallFactor(factor.function, arguments))


def _alone(factor: Factor) -> Sum:
    return (Term(Fraction(1), factors=(factor,)),)


def _number(terms: Sum) -> Fraction | None:
    """The number that a sum is, if it is one."""
    if not terms:
        return Fraction(0)
    t = terms[0]
    return t.coefficient if len(terms) == 1 and not (t.scale or t.bound or t.domain or t.factors) else None


def _extreme(alternatives: tuple[Alternative, ...]) -> Sum:
    """max(c·a + t, c·b + t) = c·max(a, b) + t, for a number c > 0 and whatever t no alternative's variables reach."""
    shared = _shared_terms(alternatives)
    keys = {term_key(t) for t in shared}
    rest = [tuple(t for t in a.value if term_key(t) not in keys) for a in alternatives]
    numbers = [t.coefficient for value in rest for t in value]
    content = Fraction(1)
    if numbers:
        content = Fraction(math.gcd(*(n.numerator for n in numbers)), math.lcm(*(n.denominator for n in numbers)))
    scaled = tuple(
        Alternative(a.bound, a.domain, times(value, 1 / content)) for a, value in zip(alternatives, rest, strict=True)
    )
    return (*times(_alone(ExtremeFactor(_distinct(scaled))), content), *shared)


def _without_unused(alternative: Alternative, facts: Facts) -> Alternative:
    """A variable that the value does not mention says only that its range is not empty."""
    for variable in alternative.bound:
        about = [c for c in alternative.domain if variable in symbols_of_condition(c)]
        extent = _extent(variable, about)
        if variable in symbols_of(alternative.value) or extent is None or not facts.entails(extent >= 1):
            continue
        fewer = tuple(v for v in alternative.bound if v != variable)
        rest = tuple(c for c in alternative.domain if c not in about)
        return _without_unused(Alternative(fewer, rest, alternative.value), facts)
    return alternative


def _shared_terms(alternatives: tuple[Alternative, ...]) -> Sum:
    """Terms that all alternatives have in common and that mention none of their variables."""
    shared: dict[str, Term] | None = None
    for a in alternatives:
        own = {
            f"{t.coefficient} {term_key(t)}": t
            for t in a.value
            if not t.domain and not t.bound and symbols_of((t,)).isdisjoint(a.bound)
        }
        shared = own if shared is None else {k: t for k, t in shared.items() if k in own}
    return tuple((shared or {}).values())


def _distinct(alternatives: tuple[Alternative, ...]) -> tuple[Alternative, ...]:
    """max(a, a) = a."""
    unique: dict[str, Alternative] = {}
    for a in alternatives:
        key = "|".join((str(a.bound), " & ".join(sorted(map(str, a.domain))), sum_key(a.value)))
        unique.setdefault(key, a)
    return tuple(unique.values())


def reciprocal(terms: Sum, facts: Facts) -> Sum:
    """1 over a sum, with everything positive that can be taken out of it taken out."""
    if len(terms) == 1 and not terms[0].bound and not terms[0].domain:
        whole = _inverted(terms[0], facts)
        if whole is not None:
            return whole
    coefficient, scale = _content(terms, facts)
    upside_down = tuple((atom, -e) for atom, e in scale)
    rest, shift = _exponential_content(times(terms, 1 / coefficient, upside_down))
    outside: Sum = (Term(1 / coefficient, upside_down),)
    if shift:
        outside = multiply(outside, _alone(CallFactor("exp", (times(shift, MINUS),))))
    if _number(rest) == 1:
        return outside
    return multiply(outside, _alone(CallFactor("reciprocal", (rest,))))


def _inverted(term: Term, facts: Facts) -> Sum | None:
    """1 over one product, where every factor has a reciprocal of its own: sizes, e^a, and 1/a."""
    if not all(_is_positive(atom, facts) for atom, _ in term.scale):
        return None
    result: Sum = (Term(1 / term.coefficient, tuple((atom, -e) for atom, e in term.scale)),)
    for factor in term.factors:
        if not isinstance(factor, CallFactor):
            return None
        if factor.function == "exp":
            result = multiply(result, _alone(CallFactor("exp", (times(factor.arguments[0], MINUS),))))
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
