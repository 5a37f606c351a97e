"""Proved rules that no search is better off with.

A law among element functions that saves nothing, such as x + (y − z) = (x + y) − z, multiplies what a search looks at;
runtimes fuse such functions whatever their order. A rule that keeps its own left side and adds to it, such as y =
Slice(y), only adds work. And a convolution whose filters depend on what they filter occurs in no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from superopt.generate.worth import HEAVY_COST, is_heavy
from superopt.rewrite.rule import Call, Operand, Rule, Step, calls_of

MOVES = frozenset(
    (
        "Transpose", "Reshape", "Concat", "Split", "Slice", "Squeeze", "Unsqueeze", "Expand", "Gather", "Pad",
        "Flatten", "Tile", "DepthToSpace", "SpaceToDepth",
    )
)  # fmt: skip
"""Operators that only move elements: laws about them bring together what can be merged."""


def is_idle(rule: Rule) -> bool:
    return _is_level(rule) or _filters_itself(rule) or _adds_to_itself(rule)


def _is_level(rule: Rule) -> bool:
    """Both sides cost the same, and nothing multiplies matrices or moves elements."""
    telling = any(is_heavy(call.op) or call.op in MOVES for call in rule.calls)
    return not telling and _cost(rule.left) == _cost(rule.right) and len(calls_of(rule.left)) > 1


def _cost(steps: Iterable[Step]) -> int:
    return sum(HEAVY_COST if is_heavy(call.op) else 1 for call in calls_of(steps))


def _filters_itself(rule: Rule) -> bool:
    return any(_Dependence(rule).meets(side) for side in (rule.left, rule.right))


def _adds_to_itself(rule: Rule) -> bool:
    """Whether the right side computes a result as the left does, and does something to it."""
    before, after = _Terms(), _Terms()
    for steps, terms in ((rule.left, before), (rule.right, after)):
        for step in steps:
            terms.add(step)
    return any(before.of[name] in after.inner and after.of[name] != before.of[name] for name in rule.results)


class _Terms:
    """The values of a side, written out as text."""

    def __init__(self) -> None:
        self.of: dict[str, str] = {}
        self.inner: set[str] = set()
        """Every call there is."""

    def add(self, step: Step) -> None:
        text = self._operand(step.value)
        for number, name in enumerate(step.targets):
            self.of[name] = text if len(step.targets) == 1 else f"{text}.{number}"

    def _operand(self, operand: Operand) -> str:
        if isinstance(operand, str):
            return self.of.get(operand, operand)
        if not isinstance(operand, Call):
            return str(operand)
        operands = ", ".join(self._operand(o) for o in operand.operands)
        arguments = sorted((name, str(value)) for name, value in operand.arguments)
        text = f"{operand.domain}::{operand.op}({operands}; {arguments}; {operand.bundle})"
        self.inner.add(text)
        return text


class _Dependence:
    """Which inputs each value of a side depends on."""

    def __init__(self, rule: Rule) -> None:
        self.of = {given.name: frozenset([given.name]) for given in rule.given}
        self.met = False

    def meets(self, steps: Sequence[Step]) -> bool:
        for step in steps:
            found = self._operand(step.value)
            self.of |= dict.fromkeys(step.targets, found)
        return self.met

    def _operand(self, operand: Operand) -> frozenset[str]:
        if isinstance(operand, str):
            return self.of.get(operand, frozenset())
        if not isinstance(operand, Call):
            return frozenset()
        parts = [self._operand(o) for o in operand.operands]
        self.met |= "Conv" in operand.op and len(parts) > 1 and bool(parts[0] & parts[1])
        return frozenset[str]().union(*parts)
