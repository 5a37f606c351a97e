"""The largest of alternatives, made simpler."""

from __future__ import annotations

import math
from fractions import Fraction

from superopt.verify.canonical import sum_key, term_key
from superopt.verify.facts import Facts
from superopt.verify.ranges import spans_of
from superopt.verify.terms import Alternative, ExtremeFactor, Sum, Term, alone, symbols_of, times


def extreme(alternatives: tuple[Alternative, ...]) -> Sum:
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
    return (*times(alone(ExtremeFactor(_distinct(scaled))), content), *shared)


def without_unused(alternative: Alternative, facts: Facts) -> Alternative:
    """A variable that the value does not mention says only that its range is not empty."""
    for variable in alternative.bound:
        about = [c for c in alternative.domain if variable in c.atoms]
        spans = spans_of(variable, about)
        if variable in symbols_of(alternative.value) or spans is None:
            continue
        if not all(facts.entails(span >= 1) for span in spans):
            continue
        fewer = tuple(v for v in alternative.bound if v != variable)
        rest = tuple(c for c in alternative.domain if c not in about)
        return without_unused(Alternative(fewer, rest, alternative.value), facts)
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
