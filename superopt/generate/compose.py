"""Two rules as one: where the second reads what the first has made, the left side that leads to both.

    first    BatchNormalization(x, …) = Add(Mul(x, s), t)            s, t computed of the others
    second   Add(Conv(x, k, b), Add(Mul(x, v), w)) = Conv(x, k', b')
    both     Add(Conv(x, k, b), BatchNormalization(x, …)) = Conv(x, k'', b'')

What the second rule's pattern asks for, from one of its values down, is laid over what the first makes: inputs of the
second stand for values of the first. Sizes and attributes that meet are made equal (`equations`). That what comes out
is true follows from both, as far as sizes were understood; it is proved like anything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from superopt.generate.equations import NoSolution, Solution
from superopt.generate.respell import renamed, renamed_steps
from superopt.generate.trial import find_shapes
from superopt.ops.registry import Registry
from superopt.rewrite.editing import flat, in_steps, mentions, reads, used_names
from superopt.rewrite.expression import Expression, Literal, Name, evaluate, names_in
from superopt.rewrite.program import find
from superopt.rewrite.rule import Block, Call, Given, Number, Operand, Rule, Step, Where

APART = "'"
"""Ends the names of the second rule."""


@dataclass(frozen=True)
class Overlap:
    """Which values of the first rule the inputs of the second stand for, what is equal for that, and the values of the
    second's pattern that the first makes."""

    values: Mapping[str, str]
    equal: tuple[tuple[Expression, Expression], ...]
    covered: frozenset[str]


@dataclass(frozen=True)
class Composed:
    rule: Rule
    middle: tuple[Step, ...]
    """The left side after the first rule, before the second: as steps over the rule's inputs, flat."""


class Following:
    """A rule that comes second: under names of its own, so that both may be at work."""

    def __init__(self, rule: Rule) -> None:
        self.rule = renamed(rule, {name: name + APART for name in used_names(rule)})
        self.pattern = _plain(self.rule.left, self.rule, "p")
        self.roots: dict[tuple[str, str], list[str]] = {}
        """Values of the pattern by the operator that makes them."""
        for step in self.pattern:
            if isinstance(step.value, Call) and len(step.targets) == 1:
                self.roots.setdefault((step.value.domain, step.value.op), []).append(step.targets[0])


class Composer:
    """`first`, a rule with one result, followed by others."""

    def __init__(self, first: Rule, registry: Registry) -> None:
        self.first, self.registry = first, registry
        self.given = {g.name: g for g in first.given}
        self.result = first.results[0]
        self.left, self.right = _plain(first.left, first, "l"), _plain(first.right, first, "m")
        self.makers = {s.targets[0]: s for s in self.right if len(s.targets) == 1}
        self._shapes: Mapping[str, tuple[Expression, ...]] | None = None

    def composed(self, following: Following) -> Iterator[Composed]:
        """One for each place of the second's pattern that the first leads to."""
        made = self.makers.get(self.result)
        if made is None or not isinstance(made.value, Call):
            return
        unifier = _Unifier(self, following)
        for root in following.roots.get((made.value.domain, made.value.op), ()):
            for overlap in unifier.overlaps(root, self.result):
                try:
                    yield self._joined(following, root, overlap)
                except NoSolution:
                    continue

    def _joined(self, following: Following, root: str, overlap: Overlap) -> Composed:
        second, names = following.rule, overlap.values
        rest = [s for s in following.pattern if not set(s.targets) <= overlap.covered]
        kept = reads(rest) | set(second.results)
        if kept & (overlap.covered - {root}):
            raise NoSolution("what is read in between is not there before the first rule")
        if any(names[n] not in self.given for n in kept & names.keys()):
            raise NoSolution("the pattern reads what only the first rule computes")
        solution = self._solution(second, overlap)
        around = renamed_steps(rest, names)
        made = renamed_steps(self.right, {self.result: "made"})
        right = (*made, *renamed_steps(_plain(second.right, second, "q"), names))
        rule = Rule(
            "composed",
            "",
            tuple(g for g in map(solution.given, (*self.first.given, *second.given)) if g and g.name not in names),
            tuple(replace(w, left=solution.of(w.left), right=solution.of(w.right)) for w in self._where(second)),
            in_steps((*renamed_steps(self.left, {self.result: root}), *around), solution.of),
            in_steps(_needed(right, second.results), solution.of),
            finite=self.first.finite or second.finite,
            origin="generated",
        )
        middle = _needed((*renamed_steps(self.right, {self.result: root}), *around), second.results)
        return Composed(replace(rule, given=_mentioned(rule)), in_steps(middle, solution.of))

    def _where(self, second: Rule) -> tuple[Where, ...]:
        return tuple(dict.fromkeys((*self.first.where, *second.where)))

    def _solution(self, second: Rule, overlap: Overlap) -> Solution:
        solution = Solution()
        for a, b in overlap.equal:
            solution.equate(a, b)
        for given in second.given:
            if given.name in overlap.values:
                solution.equate_shapes(given.dims, self._shape(overlap.values[given.name]))
        return solution

    def _shape(self, value: str) -> tuple[Expression | Block, ...]:
        """Of an input as it is written; of what is computed as it comes out where all sizes are different numbers."""
        if value in self.given:
            return self.given[value].dims
        if self._shapes is None:
            self._shapes = _shapes(self.first, self.right, self.registry)
        if value not in self._shapes:
            raise NoSolution(f"the shape of {value} is not known")
        return self._shapes[value]


class _Unifier:
    def __init__(self, composer: Composer, following: Following) -> None:
        self.makers, self.given, self.registry = composer.makers, composer.given, composer.registry
        self.asked = {g.name: g for g in following.rule.given}
        self.parts = {s.targets[0]: s for s in following.pattern if len(s.targets) == 1}

    def overlaps(self, asked: str, made: str) -> Iterator[Overlap]:
        yield from self._value(asked, made, Overlap({}, (), frozenset()))

    def _value(self, asked: Operand, made: Operand, so_far: Overlap) -> Iterator[Overlap]:
        if asked is None or made is None:
            if asked is made:
                yield so_far
        elif isinstance(asked, Number):
            if (number := self._number(made)) is not None:
                yield replace(so_far, equal=(*so_far.equal, (asked.expression, number)))
        elif isinstance(asked, str) and asked in self.asked:
            yield from self._input(self.asked[asked], made, so_far)
        elif isinstance(asked, str) and isinstance(made, str) and asked in self.parts and made in self.makers:
            one, other = self.parts[asked].value, self.makers[made].value
            if isinstance(one, Call) and isinstance(other, Call):
                covered = replace(so_far, covered=so_far.covered | {asked})
                yield from self._call(one, other, covered)

    def _number(self, made: Operand) -> Expression | None:
        if isinstance(made, Number):
            return made.expression
        if isinstance(made, str) and made in self.given and self.given[made].kind == "real":
            return Name(made)
        return None

    def _input(self, given: Given, made: Operand, so_far: Overlap) -> Iterator[Overlap]:
        if given.kind == "real":
            if (number := self._number(made)) is not None:
                yield replace(so_far, equal=(*so_far.equal, (Name(given.name), number)))
        elif isinstance(made, str) and so_far.values.get(given.name, made) == made and self._is_kind(made, given):
            yield replace(so_far, values={**so_far.values, given.name: made})

    def _is_kind(self, made: str, given: Given) -> bool:
        return made not in self.given or self.given[made].kind == given.kind

    def _call(self, asked: Call, made: Call, so_far: Overlap) -> Iterator[Overlap]:
        if (asked.domain, asked.op) != (made.domain, made.op) or len(asked.operands) != len(made.operands):
            return
        if asked.bundle is not None or made.bundle is not None:
            return  # attributes that are not named cannot be compared
        said, told = dict(asked.arguments), dict(made.arguments)
        if said.keys() != told.keys():
            return
        start = replace(so_far, equal=(*so_far.equal, *((said[n], told[n]) for n in said)))
        orders = [made.operands]
        if find(made, self.registry).commutative and len(made.operands) == 2:
            orders.append((made.operands[1], made.operands[0]))
        for operands in dict.fromkeys(orders):
            found = [start]
            for one, other in zip(asked.operands, operands, strict=True):
                found = list(chain.from_iterable(self._value(one, other, f) for f in found))
            yield from found


def _plain(steps: tuple[Step, ...], rule: Rule, prefix: str) -> tuple[Step, ...]:
    """One call a step; values that are no results are called by numbers."""
    steps = flat(steps)
    kept = {"_", *rule.results}
    inner = [t for s in steps for t in s.targets if t not in kept]
    return renamed_steps(steps, {t: f"{prefix}{k}~" for k, t in enumerate(inner)})


def _needed(steps: Iterable[Step], results: Iterable[str]) -> tuple[Step, ...]:
    """Those that lead to the results."""
    wanted = set(results)
    found: list[Step] = []
    for step in reversed(tuple(steps)):
        if wanted & set(step.targets):
            found.append(step)
            wanted |= reads([step])
    return tuple(reversed(found))


def _mentioned(rule: Rule) -> tuple[Given, ...]:
    """Tensors that a side reads, numbers that something mentions."""
    steps = (*rule.left, *rule.right)
    told = reads(steps) | mentions(steps) | {n for w in rule.where for e in (w.left, w.right) for n in names_in(e)}
    told |= {n for g in rule.given for d in g.dims if not isinstance(d, Block) for n in names_in(d)}
    return tuple(g for g in rule.given if g.name in told)


def _shapes(rule: Rule, steps: tuple[Step, ...], registry: Registry) -> dict[str, tuple[Expression, ...]]:
    """Of what the steps compute, where each size is 1 or one that the inputs have."""
    drawn = None if rule.blocks else find_shapes(rule, registry)
    if drawn is None:
        return {}
    known: dict[int, Expression] = {1: Literal("1")}
    for given in rule.given:
        for dim in given.dims:
            if not isinstance(dim, Block):
                known.setdefault(int(evaluate(dim, drawn.names)), dim)
    found = drawn.of(steps)
    return {n: tuple(known[d] for d in s) for n, s in found.items() if all(d in known for d in s)}
