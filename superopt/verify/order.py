# pyright: basic
"""Facts about order (max, min, relu, clip) and choices, decided by Z3 over the reals.

Whatever is not arithmetic becomes an unknown real number, equal unknowns the same one; extremes become what they are.
If the sum is zero for all numbers, it is zero for those that the unknowns stand for.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import z3

from superopt.ops.index import Atom, Poly
from superopt.verify.canonical import factor_key
from superopt.verify.facts import Facts
from superopt.verify.terms import AccessFactor, CallFactor, ExtremeFactor, Factor, Sum, Term

LIMIT_MS = 2000
_COMPARISONS = {"==": op.eq, "!=": op.ne, "<": op.lt, "<=": op.le, ">": op.gt, ">=": op.ge}


class _TooHard(Exception):
    pass


def equal_by_order(terms: Sum, facts: Facts, same: Callable[[Sum, Sum], bool]) -> bool:
    """Whether a sum without reductions of its own is zero for all values of its unknowns."""
    if not any(_has_order(f) for t in terms for f in t.factors):
        return False
    try:
        reals = _Reals(facts, same)
        total = z3.Sum([z3.RealVal(0), *map(reals.term, terms)])
    except _TooHard:
        return False
    solver = z3.Solver()
    solver.set("timeout", LIMIT_MS)
    solver.add(*reals.known)
    solver.add(total != 0)
    return solver.check() == z3.unsat


def _has_order(factor: Factor) -> bool:
    if isinstance(factor, ExtremeFactor):
        return True
    if isinstance(factor, CallFactor):
        return factor.function == "step"
    return factor.flag


class _Reals:
    def __init__(self, facts: Facts, same: Callable[[Sum, Sum], bool]) -> None:
        self.facts, self.same = facts, same
        self.unknowns: list[tuple[Factor, Any]] = []
        self.sizes: dict[str, Any] = {}
        self.known: list[Any] = []

    def term(self, t: Term) -> Any:
        if t.bound:
            raise _TooHard
        guards = [c for c in t.domain if not self.facts.entails(c)]
        if guards:
            raise _TooHard
        product = _number(t.coefficient)
        for atom, exponent in t.scale:
            size = self._size(atom)
            for _ in range(abs(exponent)):
                product = product * size if exponent > 0 else product / size
        for factor in t.factors:
            product = product * self.factor(factor)
        return product

    def sum(self, terms: Sum) -> Any:
        return z3.Sum([z3.RealVal(0), *map(self.term, terms)])

    def _size(self, atom: Atom) -> Any:
        name = str(atom)
        if not self.facts.entails(Poly({(atom,): 1}) >= 1):
            raise _TooHard
        if name not in self.sizes:
            self.sizes[name] = z3.Real(f"size {name}")
            self.known.append(self.sizes[name] >= 1)
        return self.sizes[name]

    def factor(self, factor: Factor) -> Any:
        if isinstance(factor, ExtremeFactor) and not any(a.bound or a.domain for a in factor.alternatives):
            values = [self.sum(a.value) for a in factor.alternatives]
            largest = values[0]
            for value in values[1:]:
                largest = z3.If(value >= largest, value, largest)
            return largest
        if isinstance(factor, CallFactor) and factor.function == "step":
            return z3.If(self.sum(factor.arguments[0]) > 0, z3.RealVal(1), z3.RealVal(0))
        return self._unknown(factor)

    def _unknown(self, factor: Factor) -> Any:
        for seen, name in self.unknowns:
            if self._same(seen, factor):
                return name
        name = z3.Real(f"u{len(self.unknowns)}")
        if isinstance(factor, AccessFactor) and factor.flag:
            self.known.append(z3.Or(name == 0, name == 1))
        if isinstance(factor, AccessFactor):  # a number, or an element of a tensor of positive ones
            self.known += [
                _COMPARISONS[f.comparison](name, _number(f.value)) for f in self.facts.reals if f.name == factor.tensor
            ]
        if isinstance(factor, CallFactor) and factor.function == "exp":
            self.known.append(name > 0)
        if isinstance(factor, CallFactor) and factor.function == "reciprocal":
            with suppress(_TooHard):
                below = self.sum(factor.arguments[0])
                self.known.append(z3.Implies(below != 0, name * below == 1))
        if isinstance(factor, CallFactor) and factor.function == "sqrt":
            under = self.sum(factor.arguments[0])
            self.known.append(z3.Implies(under >= 0, z3.And(name >= 0, name * name == under)))
        self.unknowns.append((factor, name))
        return name

    def _same(self, a: Factor, b: Factor) -> bool:
        if factor_key(a) == factor_key(b):
            return True
        if isinstance(a, AccessFactor) and isinstance(b, AccessFactor):
            return (
                a.tensor == b.tensor
                and len(a.indices) == len(b.indices)
                and all(self.facts.equal(i, j) for i, j in zip(a.indices, b.indices, strict=True))
            )
        one = Fraction(1)
        return (
            isinstance(a, CallFactor)
            and isinstance(b, CallFactor)
            and self.same((Term(one, factors=(a,)),), (Term(one, factors=(b,)),))
        )


def _number(value: Fraction) -> Any:
    return z3.Q(value.numerator, value.denominator)
