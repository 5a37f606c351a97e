"""From an element expression to a sum of terms."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from superopt.ops.condition import Condition, negate, parts_of
from superopt.ops.element import (
    Access,
    Add,
    Call,
    Choose,
    Element,
    Multiply,
    Number,
    Reduce,
    Select,
    Size,
)
from superopt.ops.index import Poly, Symbol
from superopt.verify.facts import Facts
from superopt.verify.terms import (
    ONE,
    AccessFactor,
    Alternative,
    CallFactor,
    ExtremeFactor,
    Sum,
    Term,
    alone,
    constant,
    multiply,
    number_of,
    of_size,
    renamed,
    times,
)

MINUS = Fraction(-1)


class Inexpressible(Exception):
    """A construction that sums of terms cannot hold; the verdict is unknown."""


def expand(e: Element, facts: Facts) -> Sum:
    """`facts` hold for the free symbols of `e`."""
    if isinstance(e, Access):
        return (Term(Fraction(1), factors=(AccessFactor(e.tensor, e.indices),)),)
    if isinstance(e, Number):
        return constant(e.value)
    if isinstance(e, Size):
        return of_size(e.index)
    if isinstance(e, Add):
        return expand(e.left, facts) + expand(e.right, facts)
    if isinstance(e, Multiply):
        return multiply(expand(e.left, facts), expand(e.right, facts))
    if isinstance(e, Select):
        return _within(expand(e.then, facts), e.condition) + _within(expand(e.otherwise, facts), negate(e.condition))
    if isinstance(e, Choose):
        which = _flag(e.which, facts)
        otherwise = multiply(ONE + times(which, MINUS), expand(e.otherwise, facts))
        return multiply(which, expand(e.then, facts)) + otherwise
    if isinstance(e, Call):
        return _call(e, facts)
    assert isinstance(e, Reduce)
    return _reduce(e, facts)


def _within(terms: Sum, condition: Condition | bool) -> Sum:
    if isinstance(condition, bool):
        return terms if condition else ()
    return _within_all(terms, parts_of(condition))


def _flag(e: Element, facts: Facts) -> Sum:
    """An element that is 0 or 1, as a factor that knows it."""
    which = expand(e, facts)
    flags: list[Term] = []
    for t in which:
        if t.coefficient != 1 or t.scale or t.bound or len(t.factors) != 1:
            raise Inexpressible("a choice by something computed")
        factor = t.factors[0]
        if isinstance(factor, AccessFactor):
            factor = AccessFactor(factor.tensor, factor.indices, flag=True)
        elif not (isinstance(factor, CallFactor) and factor.function == "step"):
            raise Inexpressible("a choice by something computed")
        flags.append(Term(t.coefficient, t.scale, t.bound, t.domain, (factor,)))
    return tuple(flags)


def _range(e: Reduce) -> tuple[Condition, ...]:
    variable = Poly({(e.variable,): 1})
    conditions = (variable >= 0, variable < e.extent, e.guard)
    return tuple(part for c in conditions if isinstance(c, Condition) for part in parts_of(c))


def _reduce(e: Reduce, facts: Facts) -> Sum:
    domain = _range(e)
    if e.guard is False:
        raise Inexpressible("an empty range")
    body = expand(e.body, facts.and_(*domain))
    if e.kind == "sum":
        return tuple(
            Term(t.coefficient, t.scale, (e.variable, *t.bound), (*domain, *t.domain), t.factors) for t in body
        )
    if e.kind in ("max", "min"):
        sign = Fraction(1 if e.kind == "max" else -1)
        alternatives: list[Alternative] = []
        for guard, value in cases(times(body, sign), facts.and_(*domain)):
            alternatives += _alternatives((e.variable,), (*domain, *guard), value)
        return (Term(sign, factors=(ExtremeFactor(tuple(alternatives)),)),)
    raise Inexpressible(f"a {e.kind} over a range")


def _alternatives(bound: tuple[Symbol, ...], domain: tuple[Condition, ...], value: Sum) -> list[Alternative]:
    """One alternative, or those of the extreme that the value itself is."""
    if len(value) == 1:
        term = renamed(value[0])
        plain = term.coefficient == 1 and not term.scale and not term.bound and len(term.factors) == 1
        if plain and isinstance(term.factors[0], ExtremeFactor):
            return [
                Alternative(bound + a.bound, domain + term.domain + a.domain, a.value)
                for a in term.factors[0].alternatives
            ]
    return [Alternative(bound, domain, value)]


def _call(e: Call, facts: Facts) -> Sum:
    """Function by cases: where a guard decides what the argument is, it decides what the result is."""
    if e.function == "isnan":  # no real number is none
        return ()
    split = [cases(expand(a, facts), facts) for a in e.arguments]
    found: list[Term] = []
    for choice in product(*split):
        guard = tuple(c for conditions, _ in choice for c in conditions)
        if len(choice) > 1 and facts.and_(*guard).contradictory:
            continue
        found += _within_all(apply(e.function, [value for _, value in choice]), guard)
    return tuple(found)


def _within_all(terms: Sum, guard: tuple[Condition, ...]) -> Sum:
    return tuple(Term(t.coefficient, t.scale, t.bound, (*guard, *t.domain), t.factors) for t in terms)


def apply(function: str, arguments: list[Sum]) -> Sum:
    """A function of sums, in terms of the few functions the prover knows."""
    if function == "max":
        numbers = [number_of(a) for a in arguments]
        known = [n for n in numbers if n is not None]
        if len(known) == len(numbers):
            return constant(max(known))
        return alone(ExtremeFactor(tuple(a for value in arguments for a in _alternatives((), (), value))))
    if function == "min":
        return times(apply("max", [times(a, MINUS) for a in arguments]), MINUS)
    if function == "abs":
        return apply("max", [arguments[0], times(arguments[0], MINUS)])
    return alone(CallFactor(function, tuple(arguments)))


def cases(terms: Sum, facts: Facts) -> list[tuple[tuple[Condition, ...], Sum]]:
    """Guards that exclude one another, each with what the sum is there; those that cannot hold are left out."""
    for t in terms:
        for condition in t.domain:
            if condition.atoms.isdisjoint(t.bound):
                return _split(terms, condition, facts)
    return [((), terms)]


def _split(terms: Sum, condition: Condition, facts: Facts) -> list[tuple[tuple[Condition, ...], Sum]]:
    opposite = negate(condition)
    assert isinstance(opposite, Condition)
    found: list[tuple[tuple[Condition, ...], Sum]] = []
    for holds, fails in ((condition, opposite), (opposite, condition)):
        inside = facts.and_(holds)
        if inside.contradictory:
            continue
        kept = tuple(
            Term(t.coefficient, t.scale, t.bound, tuple(c for c in t.domain if str(c) != str(holds)), t.factors)
            for t in terms
            if all(str(c) != str(fails) for c in t.domain)
        )
        known = facts.entails(holds)
        found += [((*(() if known else (holds,)), *guard), value) for guard, value in cases(kept, inside)]
    return found
