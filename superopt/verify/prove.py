"""Is a rule true for all sizes? Proved, refuted with a counterexample, or unknown."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import z3

from superopt.ops.condition import Condition
from superopt.ops.formula import Illegal, NotCovered, Tensor
from superopt.ops.index import Index
from superopt.ops.registry import Registry
from superopt.ops.symbols import Symbols
from superopt.rewrite.program import Impossible, Program, RealFact, block_ranks
from superopt.rewrite.rule import Rule
from superopt.verify.counterexample import FEW, MANY, find_counterexample
from superopt.verify.equal import equal, equal_in_cases
from superopt.verify.expand import Inexpressible, expand
from superopt.verify.facts import Effort, Facts, OutOfTime
from superopt.verify.lost import find_lost_guard, find_lost_nan
from superopt.verify.paths import Path, TooManyPaths, explore
from superopt.verify.simplify import collect
from superopt.verify.terms import Sum, replace_sum
from superopt.verify.unroll import places, term_count, unrolled
from superopt.verify.witness import output_index

SECONDS = 120.0
PATIENCE = 4
"""Times that a solver has longer for each question of a second try."""
MOST_TERMS = 2000
"""Terms of a side that are compared as written; more of them are the products of tables, and tables are read first."""
MANY_TERMS = 100
"""Terms of a side from which on it is asked whether they are those of tables."""
MOST_READ = 20_000
"""Terms of a side after that: like ones are added up before anything is compared."""
SOLVER = "z3=" + ".".join(z3.get_version_string().split(".")[:2])


@dataclass(frozen=True)
class Verdict:
    status: Literal["proved", "refuted", "unknown"]
    reason: str
    cases: int
    """How many cases (ranks, modes, orders of sizes) the proof went through."""
    seconds: float


class _Failed(Exception):
    """A case that could not be proved."""


@dataclass
class PathSource:
    """Unknowns as symbols of one path."""

    path: Path
    symbols: Symbols

    def positive(self, name: str) -> Any:
        return self._known(self.symbols.positive, name)

    def natural(self, name: str) -> Any:
        return self._known(self.symbols.natural, name)

    def _known(self, make: Any, name: str) -> Any:
        made = make(name)
        self.path.assume(self.symbols.facts[-1])
        return made

    def real(self, name: str) -> Any:
        return self.symbols.real(name)

    def choose(self, count: int) -> int:
        return self.path.choose(count)

    def assume(self, condition: Condition | bool) -> None:
        self.path.assume(condition)

    def assume_real(self, fact: RealFact) -> None:
        self.path.assume_real(fact)


def prove(
    rule: Rule, registry: Registry, *, seconds: float = SECONDS, examples: bool = True, patient: bool = True
) -> Verdict:
    """Counterexamples first, since wrong rules are mostly wrong at once; then the proof, case by case.

    Without `examples` only the proof is tried: that is how the prover itself is tested. A solver has milliseconds for a
    question, on the clock; where one was left open it may be asked once more with longer, if the prover is `patient`: a
    machine that is busy should not change what is proved.
    """
    started = time.monotonic()

    def took() -> float:
        return time.monotonic() - started

    if examples:
        example = find_counterexample(rule, registry, wanted=FEW)
        if example is not None:
            return Verdict("refuted", example, 0, took())
        lost = None if rule.finite else _lost(rule, registry)
        if lost is not None:
            return Verdict("refuted", f"true for numbers only, `where finite` is missing: {lost}", 0, took())
    effort = Effort(started + seconds)
    verdict = _proof(rule, registry, started, effort)
    if examples and verdict.status == "unknown":
        example = find_counterexample(rule, registry, wanted=MANY, seed=1)
        if example is not None:
            return Verdict("refuted", example, verdict.cases, took())
    if patient and verdict.status == "unknown" and effort.left_open:
        second = _proof(rule, registry, started, Effort(effort.deadline, PATIENCE))
        return second if second.status == "proved" else replace(verdict, seconds=took())
    return verdict


def _lost(rule: Rule, registry: Registry) -> str | None:
    """Why a rule is true for numbers only."""
    name = find_lost_nan(rule, registry)
    if name is not None:
        return f"a NaN in {name} reaches the left side's results and never the right side's"
    return find_lost_guard(rule, registry)


def _proof(rule: Rule, registry: Registry, started: float, effort: Effort) -> Verdict:
    """By cases: proved when all of them are, and at least one can occur."""

    def took() -> float:
        return time.monotonic() - started

    proved = unwitnessed = 0
    try:
        for ranks in block_ranks(rule):
            start = Facts((), effort=effort)
            for path in explore(start, lambda p, r=ranks: _prove_case(p, rule, registry, r)):
                proved += path.outcome == "proved"
                unwitnessed += path.outcome == "unwitnessed"
    except _Failed as failure:
        return Verdict("unknown", str(failure), proved, took())
    except (TooManyPaths, Inexpressible, NotCovered) as failure:
        return Verdict("unknown", f"{failure}", proved, took())
    except TypeError as failure:
        return Verdict("unknown", f"a formula takes no unknown where the rule has one: {failure}", proved, took())
    except RecursionError:
        return Verdict("unknown", "too deeply nested", proved, took())
    except OutOfTime:
        return Verdict("unknown", f"no proof within {effort.deadline - started:g} s", proved, took())
    if unwitnessed and not proved:
        return Verdict("unknown", "no sizes and attributes were found that satisfy its conditions", 0, took())
    if not proved:
        return Verdict("refuted", "vacuous: no sizes and attributes satisfy its conditions", 0, took())
    return Verdict("proved", "for all sizes and attributes that its conditions allow", proved, took())


def _prove_case(path: Path, rule: Rule, registry: Registry, ranks: Mapping[str, int]) -> None:
    """One path: legal on the left implies legal and equal on the right."""
    program = Program(rule, registry, PathSource(path, Symbols()))
    try:
        program.start(ranks)
        for given in rule.given:
            if given.kind == "positive":
                path.assume_real(RealFact(given.name, ">", Fraction(0)))
        left = program.run(rule.left)
    except (Illegal, Impossible, NotCovered):
        path.outcome = "excluded"
        return
    program.refuse_unused_conditions()
    if path.facts.contradictory:
        path.outcome = "excluded"
        return
    try:
        right = program.run(rule.right)
    except Illegal as why:
        if path.facts.contradictory:
            path.outcome = "excluded"
            return
        raise _Failed(f"the right side is ill-formed where the left is not: {why}{_where(path)}") from None
    for name in rule.results:
        _prove_equal(name, left[name], right[name], path)
    path.outcome = "proved" if path.facts.witness() is not None else "unwitnessed"


def _prove_equal(name: str, left: Tensor, right: Tensor, path: Path) -> None:
    if left.rank != right.rank:
        raise _Failed(f"{name} has rank {left.rank} on the left and {right.rank} on the right")
    for axis, (a, b) in enumerate(zip(left.shape, right.shape, strict=True)):
        if not path.facts.equal(a, b):
            raise _Failed(f"axis {axis} of {name} has size {a} on the left and {b} on the right{_where(path)}")
    before = path.facts
    ways = [_equal_as_written, _equal_unrolled]
    if not any(way(left, right, path, before) for way in (reversed(ways) if _reads_tables(left, right) else ways)):
        raise _Failed(f"{name} could not be proved equal{_where(path)}")
    path.facts = before


def _reads_tables(left: Tensor, right: Tensor) -> bool:
    """Whether a side has many terms that are fewer once its short sums are written out: a table's entries are numbers
    then, many of them zero."""
    place = tuple(output_index(k) for k in range(left.rank))
    for side in (left[place], right[place]):
        count = term_count(side)
        if count > MANY_TERMS and term_count(unrolled(side)) < count:
            return True
    return False


def _equal_as_written(left: Tensor, right: Tensor, path: Path, known: Facts) -> bool:
    place = tuple(output_index(k) for k in range(left.rank))
    facts = path.facts = _inside(place, left, known)
    sides = left[place], right[place]
    if max(map(term_count, sides)) > MOST_TERMS:
        return False
    found = expand(sides[0], facts), expand(sides[1], facts)
    return equal_in_cases(*found, facts) or _equal_renamed(*found, facts)


def _equal_renamed(left: Sum, right: Sum, facts: Facts) -> bool:
    """With one symbol for those that equations say are the same, as a group and what divides channels by it; none of
    them is 0."""
    names = {symbol: one for symbol, one in facts.renamings.items() if facts.entails(one >= 1)}
    return bool(names) and equal_in_cases(replace_sum(left, names), replace_sum(right, names), facts)


def _equal_unrolled(left: Tensor, right: Tensor, path: Path, known: Facts) -> bool:
    """With short sums written out, for each remainder of the position where a quotient of it is read."""
    place = tuple(output_index(k) for k in range(left.rank))
    path.facts = _inside(place, left, known)
    for case in places(place, left[place], right[place]):
        facts = path.facts = _inside(case, left, known)
        sides = unrolled(left[case]), unrolled(right[case])
        if max(map(term_count, sides)) > MOST_READ:
            return False
        if not equal(collect(expand(sides[0], facts)), collect(expand(sides[1], facts)), facts):
            return False
    return True


def _inside(place: tuple[Index, ...], tensor: Tensor, known: Facts) -> Facts:
    return known.and_(*(c for i, n in zip(place, tensor.shape, strict=True) for c in (i >= 0, i < n)))


def _where(path: Path) -> str:
    told = [str(c) for c in path.facts.conditions if "≥ 0" not in str(c) or "i" not in str(c)]
    return f" (where {'; '.join(told[-6:])})" if told else ""
