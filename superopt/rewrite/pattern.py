"""A rule's left side as something to look for: operator nodes, what each reads, and where to begin."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from superopt.errors import BadInput
from superopt.ops.registry import Operator, Registry
from superopt.rewrite.expression import Listing, Name
from superopt.rewrite.program import find
from superopt.rewrite.rule import Call, Given, Number, Operand, Rule, calls_of


@dataclass(frozen=True)
class Result:
    """Output `output` of the pattern's node `node`."""

    node: int
    output: int


@dataclass(frozen=True)
class Input:
    """A tensor that the rule is given."""

    name: str


@dataclass(frozen=True)
class Scalar:
    """A number: written out, or a variable for one."""

    number: Number | str


Reference: TypeAlias = Result | Input | Scalar | None


Sort: TypeAlias = "tuple[frozenset[tuple[str, str]], bool]"
"""Operators on the left, and whether there are several results."""


@dataclass(frozen=True)
class PatternNode:
    call: Call
    operator: Operator
    operands: tuple[Reference, ...]
    is_wide: bool = False
    """Whether it computes in a wider type than the rule's inputs have: from a cast to it up to the cast back."""

    @property
    def gives_wide(self) -> bool:
        return (self.is_wide and not self.call.casts("narrower")) or self.call.casts("wider")

    @property
    def repeats(self) -> Input | None:
        """The one input that a Concat puts side by side with itself: a constant may hold what that gives."""
        first = self.operands[0] if len(self.operands) > 1 and self.call.op == "Concat" else None
        return first if isinstance(first, Input) and set(self.operands) == {first} else None


@dataclass(frozen=True)
class Climb:
    """How to find another root once an input is bound: from the input up through the pattern's nodes."""

    start: Input | Result
    steps: tuple[int, ...]
    """Pattern nodes, each reading the one before; the last is the root."""


@dataclass(frozen=True)
class Pattern:
    rule: Rule
    nodes: tuple[PatternNode, ...]
    results: dict[str, Result | Input]
    """What each result of the rule is; a rule whose pattern is a bare input has none."""
    roots: tuple[int, ...]
    """Nodes that no other node of the pattern reads; the first is looked for first."""
    climbs: tuple[Climb, ...]
    """One for each further root, in order."""
    made: tuple[Result, ...]
    """Every value that the left side computes, in the order in which a program computes them."""

    @property
    def anchor(self) -> PatternNode:
        return self.nodes[self.roots[0]]

    @cached_property
    def twins(self) -> tuple[int | None, ...]:
        """For each root, the root before it that is spelled alike: finding the two in either order is the same find."""
        spelled = [self._spell(root, {}) for root in self.roots]
        found: list[int | None] = []
        for k, text in enumerate(spelled):
            before = [self.roots[j] for j in range(k) if spelled[j] == text]
            found.append(before[-1] if before else None)
        return tuple(found)

    @cached_property
    def reorders(self) -> bool:
        """Whether the right side has the same operators, none with attributes, as in x + (y + z) = y + (x + z): it pays
        only by what it brings together."""
        sides = [Counter((c.domain, c.op) for c in calls_of(steps)) for steps in (self.rule.left, self.rule.right)]
        return sides[0] == sides[1] and all(not c.arguments and c.bundle is None for c in self.rule.calls)

    @cached_property
    def grows(self) -> bool:
        """Whether the right side has more operators: if it costs the same all the same, then by work on weights."""
        return len(calls_of(self.rule.right)) > len(calls_of(self.rule.left))

    @cached_property
    def sort(self) -> Sort:
        """What rules have in common that take the same things together: two products of one input, or three."""
        return frozenset((c.domain, c.op) for c in calls_of(self.rule.left)), len(self.roots) > 1

    @cached_property
    def given(self) -> dict[str, Given]:
        return {g.name: g for g in self.rule.given}

    def _spell(self, node: int, seen: dict[str, int]) -> str:
        parts: list[str] = []
        for operand in self.nodes[node].operands:
            if isinstance(operand, Result):
                parts.append(self._spell(operand.node, seen))
            elif isinstance(operand, Input):
                shared = sum(1 for root in self.roots if operand.name in self._inputs(root)) > 1
                parts.append(operand.name if shared else f"#{seen.setdefault(operand.name, len(seen))}")
            else:
                parts.append(str(operand))
        call = self.nodes[node].call
        arguments = ", ".join(f"{name}={value}" for name, value in call.arguments)
        return f"{call.domain}::{call.op}({', '.join(parts)}; {arguments}; {call.bundle})"

    def _inputs(self, node: int) -> set[str]:
        found: set[str] = set()
        for operand in self.nodes[node].operands:
            if isinstance(operand, Input):
                found.add(operand.name)
            elif isinstance(operand, Result):
                found |= self._inputs(operand.node)
        return found


def compile_pattern(rule: Rule, registry: Registry) -> Pattern:
    builder = _Builder(rule, registry)
    for step in rule.left:
        builder.step(step.targets, step.value)
    results = {name: builder.values[name] for name in rule.results}
    for name, value in results.items():
        if isinstance(value, Scalar) or value is None:
            raise BadInput(f"{rule.name}: its result {name} is a number")
    read = {o.node for n in builder.nodes for o in n.operands if isinstance(o, Result)}
    roots = tuple(k for k in range(len(builder.nodes)) if k not in read)
    ordered, climbs = _plan(builder.nodes, roots)
    made = tuple(builder.made)
    if any(isinstance(o, Input) for n in builder.nodes if n.is_wide for o in n.operands):
        raise BadInput(f"{rule.name}: a tensor that is given is read between a cast to a wider type and the cast back")
    return Pattern(rule, tuple(builder.nodes), results, ordered, climbs, made)  # pyright: ignore[reportArgumentType]


def first_operator(rule: Rule) -> tuple[str, str] | None:
    """The domain and name of the operator that its pattern is looked for by, if it has roots, without compiling it;
    None where that takes more than a look."""
    if any(isinstance(step.value, str) for step in rule.left):
        return None
    read = {operand for call in calls_of(rule.left) for operand in call.operands if isinstance(operand, str)}
    roots = [step.value for step in rule.left if read.isdisjoint(step.targets)]
    return (roots[0].domain, roots[0].op) if roots and isinstance(roots[0], Call) else None


class _Builder:
    def __init__(self, rule: Rule, registry: Registry) -> None:
        self.rule, self.registry = rule.name, registry
        self.nodes: list[PatternNode] = []
        self.made: list[Result] = []
        self.values: dict[str, Reference] = {
            g.name: Input(g.name) if g.is_tensor else Scalar(g.name) for g in rule.given
        }

    def step(self, targets: tuple[str, ...], value: Call | str) -> None:
        if isinstance(value, str):
            self.values[targets[0]] = self.values[value]
            return
        node = self._call(value)
        for k, target in enumerate(targets):
            self.values[target] = Result(node, k)
            self.made.append(Result(node, k))

    def _call(self, call: Call) -> int:
        operands = tuple(self._operand(o) for o in call.operands)
        is_wide = any(isinstance(o, Result) and self.nodes[o.node].gives_wide for o in operands)
        self.nodes.append(PatternNode(call, find(call, self.registry), operands, is_wide))
        return len(self.nodes) - 1

    def _operand(self, operand: Operand) -> Reference:
        if operand is None:
            return None
        if isinstance(operand, str):
            return self.values[operand]
        if isinstance(operand, Call):
            node = self._call(operand)
            self.made.append(Result(node, 0))
            return Result(node, 0)
        if isinstance(operand.expression, Listing):
            raise BadInput(f"{self.rule}: a list of numbers, {operand}, stands on the right side only")
        name = operand.expression.name if isinstance(operand.expression, Name) else None
        variable = self.values.get(name) if name is not None else None
        return variable if isinstance(variable, Scalar) else Scalar(operand)


def _plan(nodes: list[PatternNode], roots: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[Climb, ...]]:
    """The roots in an order in which each but the first shares an input or a node with those before it."""
    if not roots:
        return (), ()
    ordered, climbs = [roots[0]], list[Climb]()
    bound = _below(nodes, roots[0])
    waiting = list(roots[1:])
    while waiting:
        found = next(((r, c) for r in waiting if (c := _climb(nodes, r, bound)) is not None), None)
        if found is None:
            return (), ()
        root, climb = found
        waiting.remove(root)
        ordered.append(root)
        climbs.append(climb)
        bound |= _below(nodes, root)
    return tuple(ordered), tuple(climbs)


def _below(nodes: list[PatternNode], root: int) -> set[Input | Result]:
    found: set[Input | Result] = set()
    for operand in nodes[root].operands:
        if isinstance(operand, Input | Result):
            found.add(operand)
        if isinstance(operand, Result):
            found |= _below(nodes, operand.node)
    return found


def _climb(nodes: list[PatternNode], root: int, bound: set[Input | Result]) -> Climb | None:
    for operand in nodes[root].operands:
        if isinstance(operand, Input | Result) and operand in bound:
            return Climb(operand, (root,))
    for operand in nodes[root].operands:
        if isinstance(operand, Result):
            below = _climb(nodes, operand.node, bound)
            if below is not None:
                return Climb(below.start, (*below.steps, root))
    return None
