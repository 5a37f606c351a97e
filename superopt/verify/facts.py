# pyright: basic
"""What follows from facts about integers, decided by Z3 over linear arithmetic.

A product of symbols (stride × index, heads × width) is one unknown of its own to Z3, which keeps every question linear
and decidable. What it loses is given back as consequences: for each product a·r with r ≥ 0, every fact about `a` times
`r` is a fact too. Abstraction only ever loses truths: whatever follows from it follows. Where it does not suffice, Z3's
non-linear solver gets a short try.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import z3

from superopt.ops.condition import AtLeastZero, Both, Condition, Not, Zero, parts_of
from superopt.ops.index import Atom, Index, Monomial, Poly, Quotient, Symbol, divide_terms, same, terms_of
from superopt.verify.witness import FIRST, Witness

Formula: TypeAlias = Any
"""A Z3 expression; z3 brings no usable types."""


@dataclass(frozen=True)
class Effort:
    """How hard to try: with products as unknowns, with consequences for them, with true products."""

    linear: bool
    consequences: bool
    milliseconds: int


EFFORTS = (Effort(True, False, 3000), Effort(True, True, 3000), Effort(False, False, 400))


IMPOSSIBLE = Zero(Poly({(Symbol("nowhere"),): 2, (): -1}))
"""A condition that no integers satisfy: 2x = 1."""


class Facts:
    """A conjunction of conditions. Asking is cached; extending makes a new one."""

    def __init__(self, conditions: Iterable[Condition], witnesses: Iterable[Witness] = FIRST) -> None:
        unique: dict[str, Condition] = {}
        for condition in conditions:
            for part in parts_of(condition):
                unique.setdefault(str(part), part)
        self.conditions = tuple(unique.values())
        self.keys = frozenset(unique)
        self._answers: dict[str, bool] = {}
        self._witnesses = [w for w in witnesses if w.satisfies(self.conditions)]

    def and_(self, *more: Condition | bool) -> Facts:
        """With further conditions; False among them makes a contradiction."""
        added = [c for c in more if not isinstance(c, bool)]
        if any(c is False for c in more):
            added.append(IMPOSSIBLE)
        if all(str(part) in self.keys for c in added for part in parts_of(c)):
            return self
        return Facts((*self.conditions, *added), self._witnesses or FIRST)

    def entails(self, condition: Condition | bool) -> bool:
        """Whether the condition holds wherever the facts do. "No" may mean "not found"."""
        if isinstance(condition, bool):
            return condition or self.contradictory
        if all(str(part) in self.keys for part in parts_of(condition)):
            return True
        key = str(condition)
        if key not in self._answers:
            self._answers[key] = self._unsatisfiable(_negated(condition))
        return self._answers[key]

    def equal(self, a: Index, b: Index) -> bool:
        return same(a, b) or self.entails(a == b)

    @property
    def contradictory(self) -> bool:
        if self._witnesses:
            return False
        if "" not in self._answers:
            self._answers[""] = self._unsatisfiable(None)
        return self._answers[""]

    def witness(self) -> Witness | None:
        """Numbers that satisfy the facts; None where none is found."""
        if not self._witnesses:
            self._answers[""] = self._unsatisfiable(None)
        return self._witnesses[0] if self._witnesses else None

    def _unsatisfiable(self, goal: Condition | None) -> bool:
        goals = () if goal is None else (goal,)
        if any(w.satisfies(goals) for w in self._witnesses):
            return False
        for effort in EFFORTS:
            translate = _Translator(effort.linear)
            asserted = [translate.condition(g) for g in goals]
            solver, answer = _check((*self.conditions, *goals), translate, asserted, [], effort)
            if answer == z3.unsat:
                return True
            if answer == z3.sat and self._learn(solver.model(), goals):
                return False
            if not translate.has_products:
                return False
        return False

    def _learn(self, model: Any, goals: tuple[Condition, ...]) -> bool:
        """Whether the model, taken with true products, satisfies facts and goals; if so it is kept."""
        values: list[tuple[str, Any]] = [(d.name(), model[d]) for d in model.decls()]
        found = Witness(0, 1, {name: value.as_long() for name, value in values if z3.is_int_value(value)})
        if not found.satisfies((*self.conditions, *goals)):
            return False
        self._witnesses.append(found)
        return True


def count_is_zero(facts: Facts, weighted: list[tuple[int, tuple[Condition, ...]]]) -> bool:
    """Whether, at every point that satisfies the facts, the weights of the domains containing it add up to zero."""
    if len(weighted) == 2 and weighted[0][0] == -weighted[1][0]:
        keys = [{str(c) for c in domain} - facts.keys for _, domain in weighted]
        if keys[0] == keys[1]:
            return True
    for effort in EFFORTS:
        translate = _Translator(effort.linear)
        parts = [z3.If(z3.And(*map(translate.condition, d)), z3.IntVal(w), z3.IntVal(0)) for w, d in weighted]
        extra = [c for _, d in weighted for c in _flat(d)]
        if _check(facts.conditions, translate, [z3.Sum(parts) != 0], extra, effort)[1] == z3.unsat:
            return True
        if not translate.has_products:
            return False
    return False


def same_union(facts: Facts, left: list[tuple[Condition, ...]], right: list[tuple[Condition, ...]]) -> bool:
    """Whether at every point some domain on the left holds exactly where one on the right does."""
    translate = _Translator(linear=True)
    union = [z3.Or(*(z3.And(*map(translate.condition, d)) for d in side)) for side in (left, right)]
    extra = [c for side in (left, right) for d in side for c in _flat(d)]
    return _check(facts.conditions, translate, [union[0] != union[1]], extra, EFFORTS[1])[1] == z3.unsat


def _negated(condition: Condition) -> Condition:
    return condition.of if isinstance(condition, Not) else Not(condition)


def _check(
    conditions: tuple[Condition, ...],
    translate: _Translator,
    goals: list[Formula],
    conditional: list[Condition],
    effort: Effort,
) -> tuple[Any, Any]:
    """The solver and its answer."""
    solver = z3.Solver()
    solver.set("timeout", effort.milliseconds)
    for condition in conditions:
        solver.add(translate.condition(condition))
    solver.add(*goals)
    known = list(_flat(conditions))
    solver.add(*translate.definitions())
    if effort.consequences:
        solver.add(*translate.consequences(known, conditional))
    return solver, solver.check()


def _flat(conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        if isinstance(condition, Both):
            yield from _flat(condition.parts)
        else:
            yield condition


class _Translator:
    """Conditions to Z3; products as unknowns of their own when linear."""

    def __init__(self, linear: bool) -> None:
        self.linear = linear
        self.has_products = False
        self._monomials: dict[Monomial, Formula] = {}
        self._quotients: dict[str, Quotient] = {}

    def condition(self, condition: Condition) -> Formula:
        if isinstance(condition, AtLeastZero):
            return self.index(condition.index) >= 0
        if isinstance(condition, Zero):
            return self.index(condition.index) == 0
        if isinstance(condition, Not):
            return z3.Not(self.condition(condition.of))
        assert isinstance(condition, Both)
        return z3.And(*map(self.condition, condition.parts))

    def index(self, index: Index) -> Formula:
        return z3.Sum([z3.IntVal(0), *(c * self._monomial(m) for m, c in terms_of(index).items())])

    def _monomial(self, monomial: Monomial) -> Formula:
        if not monomial:
            return z3.IntVal(1)
        found = self._monomials.get(monomial)
        if found is None:
            for atom in monomial:
                if isinstance(atom, Quotient):
                    self._quotients.setdefault(str(atom), atom)
            if len(monomial) == 1:
                found = z3.Int(str(monomial[0]))
            else:
                self.has_products = True
                if self.linear:
                    found = z3.Int("·".join(map(str, monomial)))
                else:
                    found = z3.Product([self._monomial((a,)) for a in monomial])
            self._monomials[monomial] = found
        return found

    def definitions(self) -> list[Formula]:
        """d·q ≤ x < d·q + d for every quotient q = ⌊x/d⌋ in play, given that d ≥ 1."""
        done: set[str] = set()
        made: list[Formula] = []
        while len(done) < len(self._quotients):
            for key, quotient in list(self._quotients.items()):
                if key in done:
                    continue
                done.add(key)
                rest = quotient.number - quotient.divisor * Poly({(quotient,): 1})
                inside = z3.And(self.index(rest) >= 0, self.index(quotient.divisor - 1 - rest) >= 0)
                made.append(z3.Implies(self.index(quotient.divisor) >= 1, inside))
        return made

    def consequences(self, known: list[Condition], conditional: list[Condition]) -> list[Formula]:
        """Facts multiplied by what is known to be at least zero, for the products in play."""
        bounds = [(f, True) for c in known for f in _inequalities(c)]
        bounds += [(f, False) for c in conditional for f in _inequalities(c)]
        positive = {a for f, always in bounds if always for a in _natural_atoms(f, least=1)}
        for quotient in list(self._quotients.values()):
            if not _is_positive(quotient.divisor, positive):
                continue
            rest = quotient.number - quotient.divisor * Poly({(quotient,): 1})
            bounds += [(rest, True), (quotient.divisor - 1 - rest, True)]
            bounds += [(f, True) for f in _quotient_bounds(quotient, [b for b, always in bounds if always])]
        natural = {a for f, always in bounds if always for a in _natural_atoms(f)}
        made: list[Formula] = [self.index(f) >= 0 for f, always in bounds if always]
        seen: set[tuple[str, str]] = set()
        for _ in range(2):
            for monomial in [m for m in self._monomials if len(m) > 1]:
                for k, atom in enumerate(monomial):
                    rest = (*monomial[:k], *monomial[k + 1 :])
                    if not all(a in natural for a in rest):
                        continue
                    factor = Poly({rest: 1})
                    if all(a in natural for a in monomial):
                        made.append(self._monomial(monomial) >= 0)
                    for fact, always in bounds:
                        mark = (str(fact), str(factor))
                        if mark in seen or (atom,) not in terms_of(fact):
                            continue
                        seen.add(mark)
                        larger = self.index(fact * factor) >= 0
                        made.append(larger if always else z3.Implies(self.index(fact) >= 0, larger))
        return made


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


def _natural_atoms(fact: Index, least: int = 0) -> list[Atom]:
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
    q = Poly({(quotient,): 1})
    found: list[Index] = []
    for fact in facts:
        if same(fact, quotient.number):
            found.append(q)
        upper, rest = divide_terms(fact + quotient.number + 1, quotient.divisor)
        if same(rest, 0):
            found.append(upper - 1 - q)
    return found
