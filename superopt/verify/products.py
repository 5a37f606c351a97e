"""What is known of products, given that linear arithmetic sees each of them as an unknown.

For a product a·r with r ≥ 0, every fact about `a` times `r` is a fact too. Conditions that hold only in places give
facts that hold only there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from superopt.ops.condition import AtLeastZero, Both, Condition, Not, Zero
from superopt.ops.index import Atom, Index, Monomial, Poly, Quotient, divide_terms, same, terms_of
from superopt.verify.translate import products_in, quotients_in, remainder


@dataclass(frozen=True)
class Consequence:
    """`index` ≥ 0 wherever `given` ≥ 0; everywhere, without it."""

    index: Index
    given: Index | None


def consequences(always: Iterable[Condition], sometimes: Iterable[Condition]) -> list[Consequence]:
    always, sometimes = list(_flat(always)), list(_flat(sometimes))
    everywhere = [f for c in always for f in _inequalities(c)]
    positive = {a for f in everywhere for a in _bounded_below(f, 1)}
    products = products_in((*always, *sometimes))
    found: list[Consequence] = []
    for quotient in quotients_in((*always, *sometimes)):
        if _is_positive(quotient.divisor, positive):
            rest = remainder(quotient)
            facts = [rest, quotient.divisor - 1 - rest, *_quotient_bounds(quotient, everywhere)]
            everywhere += facts
            found += [Consequence(f, None) for f in facts]
            products |= {m for f in facts for m in terms_of(f) if len(m) > 1}
    natural = {a for f in everywhere for a in _bounded_below(f, 0)}
    found += [Consequence(Poly({m: 1}), None) for m in products if all(a in natural for a in m)]
    somewhere = [f for c in sometimes for f in _inequalities(c)]
    for atom, factor in _splits(products, natural):
        found += [Consequence(f * factor, None) for f in everywhere if (atom,) in terms_of(f)]
        found += [Consequence(f * factor, f) for f in somewhere if (atom,) in terms_of(f)]
    return found


def _splits(products: set[Monomial], natural: set[Atom]) -> list[tuple[Atom, Poly]]:
    """(a, r) for each product a·r with r ≥ 0."""
    found: dict[tuple[Atom, Monomial], None] = {}
    for monomial in products:
        for k, atom in enumerate(monomial):
            rest = (*monomial[:k], *monomial[k + 1 :])
            if all(a in natural for a in rest):
                found[atom, rest] = None
    return [(atom, Poly({rest: 1})) for atom, rest in found]


def _flat(conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        if isinstance(condition, Both):
            yield from _flat(condition.parts)
        else:
            yield condition


def _inequalities(condition: Condition) -> list[Index]:
    """Polynomials that are at least zero where the condition holds."""
    if isinstance(condition, AtLeastZero):
        return [condition.index]
    if isinstance(condition, Zero):
        return [condition.index, -condition.index]
    if isinstance(condition, Not) and isinstance(condition.of, AtLeastZero):
        return [-condition.of.index - 1]
    return []


def _is_positive(index: Index, positive: set[Atom]) -> bool:
    """At least 1, seen from its form: a sum of products of positive atoms."""
    terms = terms_of(index)
    return bool(terms) and all(c > 0 and all(a in positive for a in m) for m, c in terms.items())


def _bounded_below(fact: Index, least: int) -> list[Atom]:
    """a, where the fact reads a − c ≥ 0 with c at least `least`."""
    terms = dict(terms_of(fact))
    constant = terms.pop((), 0)
    if constant <= -least and len(terms) == 1:
        ((monomial, c),) = terms.items()
        if len(monomial) == 1 and c > 0:
            return [monomial[0]]
    return []


def _quotient_bounds(quotient: Quotient, facts: list[Index]) -> list[Index]:
    """From 0 ≤ x and x ≤ d·N − 1: 0 ≤ ⌊x/d⌋ ≤ N − 1."""
    return [bound for fact in facts for bound in _bounds_by(_Fact(str(fact), fact), quotient)]


@dataclass(frozen=True)
class _Fact:
    text: str
    index: Index = field(compare=False)


@lru_cache(maxsize=1 << 15)
def _bounds_by(fact: _Fact, quotient: Quotient) -> tuple[Index, ...]:
    """Questions of one proof have most of their facts in common."""
    q = Poly({(quotient,): 1})
    lower = (q,) if same(fact.index, quotient.number) else ()
    upper, rest = divide_terms(fact.index + quotient.number + 1, quotient.divisor)
    return (*lower, upper - 1 - q) if same(rest, 0) else lower
