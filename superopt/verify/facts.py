# pyright: basic
"""What follows from facts about integers.

Quick answers come first: a condition that is one of the facts holds, one that a witness of the facts violates need not.
The rest is for Z3, with growing effort: products of symbols as unknowns of their own, which keeps questions linear and
decidable; then with what follows for those products; then, briefly, with true products. Abstraction only ever loses
truths: whatever is found to follow does follow.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from superopt.ops.condition import Condition, Not, Zero, parts_of
from superopt.ops.index import Index, Poly, Symbol, Values, same, substitute_condition
from superopt.rewrite.program import RealFact
from superopt.verify.equations import renamings
from superopt.verify.products import consequences
from superopt.verify.translate import EXACT, LINEAR, Formula, Translator, products_in, quotients_in
from superopt.verify.witness import Witness, first, repaired

LINEAR_MS = 2000
EXACT_MS = 300
MOST_WITNESSES = 16

IMPOSSIBLE = Zero(Poly({(Symbol("nowhere"),): 2, (): -1}))
"""A condition that no integers satisfy: 2x = 1."""


MENDED = 1
"""Witnesses that are mended before a solver for linear facts is asked, which takes a millisecond."""


class OutOfTime(Exception):
    """A proof took longer than it may."""


@dataclass
class Effort:
    """What a proof may spend, and whether it went without an answer for that."""

    deadline: float = math.inf
    """Of the monotonic clock."""
    patience: int = 1
    """A solver has so many times as long for a question as it usually has."""
    left_open: bool = False
    """Whether a solver's time was over before it had an answer."""

    def asked(self, solver: Any) -> Any:
        answer = solver.check()
        self.left_open = self.left_open or answer == z3.unknown
        return answer


class Facts:
    """A conjunction of conditions. Asking is cached; extending makes a new one.

    Both are what a proof spends its time on: past the deadline they raise `OutOfTime`.
    """

    def __init__(
        self,
        conditions: Iterable[Condition],
        reals: tuple[RealFact, ...] = (),
        effort: Effort | None = None,
        witnesses: Sequence[Witness] = (),
        witnessed: int = 0,
    ) -> None:
        """The witnesses, where there are any, satisfy so many of the first conditions."""
        self.reals, self.effort = reals, effort or Effort()
        if time.monotonic() > self.effort.deadline:
            raise OutOfTime
        unique: dict[str, Condition] = {}
        for condition in conditions:
            for part in parts_of(condition):
                unique.setdefault(str(part), part)
        self.conditions = tuple(unique.values())
        self.keys = frozenset(unique)
        self._answers: dict[str, bool] = {}
        self._solver: Any = None
        self._renamings: Values | None = None
        self._witnesses: list[Witness] = []
        known = witnessed if witnesses else 0
        for witness in witnesses or first():
            if len(self._witnesses) == MOST_WITNESSES:
                break
            found = repaired(witness, self.conditions, known)
            if found is not None:
                self._witnesses.append(found)

    def and_(self, *more: Condition | bool) -> Facts:
        """With further conditions; False among them makes a contradiction."""
        added = [c for c in more if not isinstance(c, bool)]
        if any(c is False for c in more):
            added.append(IMPOSSIBLE)
        if all(str(part) in self.keys for c in added for part in parts_of(c)):
            return self
        return self._extended((*self.conditions, *added), self.reals)

    def and_real(self, fact: RealFact) -> Facts:
        return self._extended(self.conditions, (*self.reals, fact))

    def _extended(self, conditions: tuple[Condition, ...], reals: tuple[RealFact, ...]) -> Facts:
        return Facts(conditions, reals, self.effort, self._witnesses, len(self.conditions))

    def entails(self, condition: Condition | bool) -> bool:
        """Whether the condition holds wherever the facts do. "No" may mean "not found"."""
        if isinstance(condition, bool):
            return condition or self.contradictory
        if all(str(part) in self.keys for part in parts_of(condition)):
            return True
        key = str(condition)
        if key not in self._answers:
            opposite = condition.of if isinstance(condition, Not) else Not(condition)
            self._answers[key] = self._is_plain(condition) or self._excluded(opposite)
        return self._answers[key]

    def _is_plain(self, condition: Condition) -> bool:
        """Whether equations among the facts, put in, leave nothing to be asked."""
        if not self.renamings or substitute_condition(condition, self.renamings) is not True:
            return False
        return all(self.entails(quotient.divisor >= 1) for quotient in quotients_in((condition,)))

    @property
    def renamings(self) -> Values:
        """Symbols that equations among the facts say are the same."""
        if self._renamings is None:
            self._renamings = renamings(self.conditions)
        return self._renamings

    def equal(self, a: Index, b: Index) -> bool:
        return same(a, b) or self.entails(a == b)

    @property
    def contradictory(self) -> bool:
        if self._witnesses:
            return False
        if "" not in self._answers:
            self._answers[""] = self._excluded(None)
        return self._answers[""]

    def witness(self) -> Witness | None:
        """Numbers that satisfy the facts; None where none is found."""
        if not self._witnesses:
            self._answers[""] = self._excluded(None)
        return self._witnesses[0] if self._witnesses else None

    def _excluded(self, goal: Condition | None) -> bool:
        """Whether no integers satisfy the facts and the goal."""
        if time.monotonic() > self.effort.deadline:
            raise OutOfTime
        goals = () if goal is None else (goal,)
        everything = (*self.conditions, *goals)
        if goal is not None and self._is_open(goal, everything):
            return False
        answer, model = self._ask_linear(goals)
        if answer == z3.unsat:
            return True
        if model is not None and self._learn(model, goals):
            return False
        if not products_in(everything) and not quotients_in(everything):
            return False
        solver = _solver(LINEAR, everything, LINEAR_MS * self.effort.patience)
        solver.add(*_known_products(everything, ()))
        answer = self.effort.asked(solver)
        if answer == z3.unsat:
            return True
        if answer == z3.sat and self._learn(solver.model(), goals):
            return False
        solver = _solver(EXACT, everything, EXACT_MS * self.effort.patience)
        answer = self.effort.asked(solver)
        if answer == z3.sat:
            self._learn(solver.model(), goals)
        return answer == z3.unsat

    def _is_open(self, goal: Condition, everything: tuple[Condition, ...]) -> bool:
        """Whether witnesses show that the goal may hold. Where the solver answers at once few are mended for it."""
        if any(witness.satisfies(goal) for witness in self._witnesses):
            return True
        hard = products_in(everything) or quotients_in(everything)
        mended = self._witnesses if hard else self._witnesses[:MENDED]
        known = len(self.conditions)
        return any(repaired(witness, everything, known) is not None for witness in mended)

    def _ask_linear(self, goals: tuple[Condition, ...]) -> tuple[Any, Any]:
        """The answer, and a model where there is one; the facts stay asserted from question to question."""
        if self._solver is None:
            self._solver = _solver(LINEAR, self.conditions, LINEAR_MS * self.effort.patience)
        self._solver.push()
        self._solver.add(*map(LINEAR.condition, goals), *LINEAR.definitions(goals))
        answer = self.effort.asked(self._solver)
        model = self._solver.model() if answer == z3.sat else None
        self._solver.pop()
        return answer, model

    def _learn(self, model: Any, goals: tuple[Condition, ...]) -> bool:
        """Whether the model, taken with true products, satisfies facts and goals; if so it is kept."""
        values: list[tuple[str, Any]] = [(d.name(), model[d]) for d in model.decls()]
        guess = Witness(0, 1, {name: value.as_long() for name, value in values if z3.is_int_value(value)})
        found = repaired(guess, (*self.conditions, *goals))
        if found is None:
            return False
        if len(self._witnesses) < MOST_WITNESSES:
            self._witnesses.append(found)
        return True


def _solver(translate: Translator, conditions: Iterable[Condition], milliseconds: int) -> Any:
    solver = z3.Solver()
    solver.set("timeout", milliseconds)
    conditions = tuple(conditions)
    solver.add(*map(translate.condition, conditions), *translate.definitions(conditions))
    return solver


def _known_products(always: Iterable[Condition], sometimes: Iterable[Condition]) -> list[Formula]:
    return [
        LINEAR.index(c.index) >= 0
        if c.given is None
        else z3.Implies(LINEAR.index(c.given) >= 0, LINEAR.index(c.index) >= 0)
        for c in consequences(always, sometimes)
    ]


Weighted = list[tuple[int, tuple[Condition, ...]]]


def count_is_zero(facts: Facts, weighted: Weighted) -> bool:
    """Whether, at every point that satisfies the facts, the weights of the domains containing it add up to zero."""
    keys = [frozenset(str(c) for c in domain) - facts.keys for _, domain in weighted]
    totals: dict[frozenset[str], int] = {}
    for key, (weight, _) in zip(keys, weighted, strict=True):
        totals[key] = totals.get(key, 0) + weight
    if not any(totals.values()):
        return True

    def differs(translate: Translator) -> Formula:
        parts = [z3.If(z3.And(*map(translate.condition, d)), z3.IntVal(w), z3.IntVal(0)) for w, d in weighted]
        return z3.Sum(parts) != 0

    return _never(facts, differs, [c for _, d in weighted for c in d])


def same_union(facts: Facts, left: list[tuple[Condition, ...]], right: list[tuple[Condition, ...]]) -> bool:
    """Whether at every point some domain on the left holds exactly where one on the right does."""

    def differs(translate: Translator) -> Formula:
        union = [z3.Or(*(z3.And(*map(translate.condition, d)) for d in side)) for side in (left, right)]
        return union[0] != union[1]

    return _never(facts, differs, [c for side in (left, right) for d in side for c in d])


def _never(facts: Facts, differs: Any, domains: list[Condition]) -> bool:
    """Whether nothing that satisfies the facts satisfies the formula, which the domains' conditions make up."""
    for translate, limit, products in ((LINEAR, LINEAR_MS, False), (LINEAR, LINEAR_MS, True), (EXACT, EXACT_MS, False)):
        solver = _solver(translate, facts.conditions, limit * facts.effort.patience)
        solver.add(differs(translate), *translate.definitions(domains))
        if products:
            solver.add(*_known_products(facts.conditions, domains))
        if facts.effort.asked(solver) == z3.unsat:
            return True
        if not products_in((*facts.conditions, *domains)) and not quotients_in((*facts.conditions, *domains)):
            return False
    return False
