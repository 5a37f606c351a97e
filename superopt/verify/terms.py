"""Element expressions as sums of terms, the form in which they are compared.

    term  =  coefficient × sizes × factors, summed over bound variables inside a domain

A guard on indices is part of the domain (1 inside, 0 outside), so padding, slices and concatenation need no cases. A
factor is an access to an input, a function of sums, or an extreme: the largest of alternatives, each a sum that ranges
over its own bound variables inside its own domain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from superopt.ops.condition import Condition, parts_of
from superopt.ops.element import fresh
from superopt.ops.index import Atom, Index, Poly, Symbol, Values, atoms_of, substitute, substitute_condition, terms_of
from superopt.verify.facts import IMPOSSIBLE


@dataclass(frozen=True, eq=False)
class AccessFactor:
    tensor: str
    indices: tuple[Index, ...]
    flag: bool = False
    """Known to be 0 or 1."""


@dataclass(frozen=True, eq=False)
class CallFactor:
    function: str
    arguments: tuple[Sum, ...]


@dataclass(frozen=True, eq=False)
class Alternative:
    bound: tuple[Symbol, ...]
    domain: tuple[Condition, ...]
    value: Sum


@dataclass(frozen=True, eq=False)
class ExtremeFactor:
    """The largest value of all alternatives (a smallest value is minus the largest of the negatives)."""

    alternatives: tuple[Alternative, ...]


Factor: TypeAlias = AccessFactor | CallFactor | ExtremeFactor
Scale: TypeAlias = tuple[tuple[Atom, int], ...]
"""Sizes used as numbers, with exponents; negative ones divide."""


@dataclass(frozen=True, eq=False)
class Term:
    coefficient: Fraction
    scale: Scale = ()
    bound: tuple[Symbol, ...] = ()
    domain: tuple[Condition, ...] = ()
    factors: tuple[Factor, ...] = ()


Sum: TypeAlias = tuple[Term, ...]

ONE: Sum = (Term(Fraction(1)),)


def constant(value: Fraction) -> Sum:
    return (Term(value),) if value else ()


def alone(factor: Factor) -> Sum:
    return (Term(Fraction(1), factors=(factor,)),)


def number_of(terms: Sum) -> Fraction | None:
    """The number that a sum is, if it is one."""
    if not terms:
        return Fraction(0)
    t = terms[0]
    return t.coefficient if len(terms) == 1 and not (t.scale or t.bound or t.domain or t.factors) else None


def of_size(index: Index) -> Sum:
    """A size as a number."""
    return tuple(Term(Fraction(c), scale_of(m)) for m, c in terms_of(index).items())


def scale_of(atoms: Iterable[Atom], exponent: int = 1) -> Scale:
    return multiply_scales(*(((atom, exponent),) for atom in atoms))


def multiply_scales(*scales: Scale) -> Scale:
    exponents: dict[Atom, int] = {}
    for scale in scales:
        for atom, exponent in scale:
            exponents[atom] = exponents.get(atom, 0) + exponent
    return tuple(sorted(((a, e) for a, e in exponents.items() if e), key=lambda pair: pair[0].key))


def times(terms: Sum, coefficient: Fraction, scale: Scale = ()) -> Sum:
    return tuple(
        Term(t.coefficient * coefficient, multiply_scales(t.scale, scale), t.bound, t.domain, t.factors) for t in terms
    )


def multiply(a: Sum, b: Sum) -> Sum:
    """Every term with every term; bound variables are made distinct first."""
    product: list[Term] = []
    for t in a:
        for u in b:
            v = renamed(u) if t.bound else u
            product.append(
                Term(
                    t.coefficient * v.coefficient, multiply_scales(t.scale, v.scale), t.bound + v.bound,
                    t.domain + v.domain, _without_repeated_flags(t.factors + v.factors),
                )
            )  # fmt: skip
    return tuple(product)


def _without_repeated_flags(factors: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """A flag times itself is itself."""
    kept: list[Factor] = []
    seen: set[str] = set()
    for factor in factors:
        if isinstance(factor, AccessFactor) and factor.flag:
            key = f"{factor.tensor}{factor.indices}"
            if key in seen:
                continue
            seen.add(key)
        kept.append(factor)
    return tuple(kept)


def renamed(term: Term) -> Term:
    """The same term with bound variables of its own."""
    if not term.bound:
        return term
    names = {v: fresh(v.name.split("!")[0]) for v in term.bound}
    replaced = replace(term, {v: Poly({(w,): 1}) for v, w in names.items()})
    return Term(replaced.coefficient, replaced.scale, tuple(names.values()), replaced.domain, replaced.factors)


def replace(term: Term, values: Values) -> Term:
    """Symbols replaced throughout; those the term itself binds should not be among what replaces them."""
    if not values:
        return term
    return Term(
        term.coefficient, term.scale, term.bound,
        replace_domain(term.domain, values), tuple(replace_factor(f, values) for f in term.factors),
    )  # fmt: skip


def replace_sum(terms: Sum, values: Values) -> Sum:
    return tuple(replace(t, values) for t in terms)


def replace_domain(domain: tuple[Condition, ...], values: Values) -> tuple[Condition, ...]:
    found: list[Condition] = []
    for condition in domain:
        now = substitute_condition(condition, values)
        if isinstance(now, Condition):
            found += parts_of(now)
        elif not now:
            found.append(IMPOSSIBLE)
    return tuple(found)


def replace_factor(factor: Factor, values: Values) -> Factor:
    if isinstance(factor, AccessFactor):
        return AccessFactor(factor.tensor, tuple(substitute(i, values) for i in factor.indices), factor.flag)
    if isinstance(factor, CallFactor):
        return CallFactor(factor.function, tuple(replace_sum(a, values) for a in factor.arguments))
    return ExtremeFactor(
        tuple(
            Alternative(a.bound, replace_domain(a.domain, values), replace_sum(a.value, values))
            for a in factor.alternatives
        )
    )


def symbols_of_factor(factor: Factor) -> frozenset[Atom]:
    if isinstance(factor, AccessFactor):
        return frozenset[Atom]().union(*(atoms_of(i) for i in factor.indices))
    if isinstance(factor, CallFactor):
        return frozenset[Atom]().union(*(symbols_of(a) for a in factor.arguments))
    return frozenset[Atom]().union(*(symbols_of(a.value) | symbols_of_domain(a.domain) for a in factor.alternatives))


def symbols_of(terms: Sum) -> frozenset[Atom]:
    found: frozenset[Atom] = frozenset()
    for t in terms:
        found = found.union(symbols_of_domain(t.domain), *(symbols_of_factor(f) for f in t.factors))
    return found


def symbols_of_domain(domain: Iterable[Condition]) -> frozenset[Atom]:
    return frozenset[Atom]().union(*(c.atoms for c in domain))
