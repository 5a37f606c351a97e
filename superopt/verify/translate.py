# pyright: basic
"""Conditions on integers as Z3 formulas.

`LINEAR` takes each product of symbols for an unknown of its own; `EXACT` multiplies. Both keep what they translated:
the same few conditions are asked about again and again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import z3

from superopt.ops.condition import AtLeastZero, Both, Condition, Not, Zero
from superopt.ops.index import Index, Monomial, Poly, Quotient, terms_of

Formula: TypeAlias = Any
"""A Z3 expression; z3 brings no usable types."""


class Translator:
    def __init__(self, linear: bool) -> None:
        self.linear = linear
        self._conditions: dict[str, Formula] = {}
        self._indices: dict[str, Formula] = {}
        self._monomials: dict[Monomial, Formula] = {}
        self._definitions: dict[Quotient, Formula] = {}

    def condition(self, condition: Condition) -> Formula:
        key = str(condition)
        found = self._conditions.get(key)
        if found is None:
            found = self._conditions[key] = self._translate(condition)
        return found

    def _translate(self, condition: Condition) -> Formula:
        if isinstance(condition, AtLeastZero):
            return self.index(condition.index) >= 0
        if isinstance(condition, Zero):
            return self.index(condition.index) == 0
        if isinstance(condition, Not):
            return z3.Not(self.condition(condition.of))
        assert isinstance(condition, Both)
        return z3.And(*map(self.condition, condition.parts))

    def index(self, index: Index) -> Formula:
        key = str(index)
        found = self._indices.get(key)
        if found is None:
            found = self._indices[key] = self._sum(index)
        return found

    def _sum(self, index: Index) -> Formula:
        terms = [self._monomial(m) if c == 1 else c * self._monomial(m) for m, c in terms_of(index).items()]
        if not terms:
            return z3.IntVal(0)
        return terms[0] if len(terms) == 1 else z3.Sum(terms)

    def _monomial(self, monomial: Monomial) -> Formula:
        found = self._monomials.get(monomial)
        if found is None:
            if not monomial:
                found = z3.IntVal(1)
            elif len(monomial) == 1:
                found = z3.Int(str(monomial[0]))
            elif self.linear:
                found = z3.Int("·".join(map(str, monomial)))
            else:
                found = z3.Product([self._monomial((a,)) for a in monomial])
            self._monomials[monomial] = found
        return found

    def definitions(self, conditions: Iterable[Condition]) -> list[Formula]:
        """d·q ≤ x < d·q + d for every quotient q = ⌊x/d⌋ in the conditions, given that d ≥ 1."""
        return [self._definition(q) for q in quotients_in(conditions)]

    def _definition(self, quotient: Quotient) -> Formula:
        found = self._definitions.get(quotient)
        if found is None:
            rest = remainder(quotient)
            inside = z3.And(self.index(rest) >= 0, self.index(quotient.divisor - 1 - rest) >= 0)
            found = z3.Implies(self.index(quotient.divisor) >= 1, inside)
            self._definitions[quotient] = found
        return found


LINEAR, EXACT = Translator(linear=True), Translator(linear=False)


def remainder(quotient: Quotient) -> Index:
    return quotient.number - quotient.divisor * Poly({(quotient,): 1})


def quotients_in(conditions: Iterable[Condition]) -> list[Quotient]:
    found = {a for c in conditions for a in c.atoms if isinstance(a, Quotient)}
    return sorted(found, key=str)


def products_in(conditions: Iterable[Condition]) -> set[Monomial]:
    """Products of symbols that the conditions mention."""
    found: set[Monomial] = set()
    for condition in conditions:
        if isinstance(condition, AtLeastZero | Zero):
            found |= {m for m in condition.index.terms if len(m) > 1}
        elif isinstance(condition, Not):
            found |= products_in((condition.of,))
        elif isinstance(condition, Both):
            found |= products_in(condition.parts)
    return found
