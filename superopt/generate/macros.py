"""Macros: rules in one step over hills, where the optimizer would not climb.

    [[macros]]
    name = "two-steps"
    most = 60                    that a proof is tried of, those that gain most first

Composed of pairs of known rules (`compose`): the first leads to something that costs more when it runs, the second from
there to something that costs less than what both began with. Rules do not say which inputs are weights; here all but
the first that the left side reads are, as in most models, and what is computed of weights alone costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from superopt.generate.compose import Composer, Following
from superopt.generate.generalize import can_be_used
from superopt.generate.recipe import Macros
from superopt.generate.respell import respelled
from superopt.generate.trial import survives
from superopt.generate.worth import HEAVY_COST, VIEWS, is_heavy
from superopt.ops.registry import Registry
from superopt.rewrite.editing import flat, reads
from superopt.rewrite.rule import Call, Rule, Step
from superopt.rewrite.text import format_meaning

MOST_CALLS = 24
"""On the right side of a macro."""


@dataclass(frozen=True)
class Hill:
    rule: Rule
    start: int
    middle: int
    end: int

    @property
    def order(self) -> tuple[int, int, str]:
        """Those that gain most, then those that need it most, then by text."""
        return self.end - self.start, self.start - self.middle, format_meaning(self.rule)


def hills(rules: Sequence[Rule], registry: Registry) -> list[Hill]:
    """All that two of the rules make, once each."""
    climbing = [rule for rule in rules if len(rule.results) == 1 and not rule.is_partial and _rise(rule) > 0]
    falling = [Following(rule) for rule in rules if not rule.is_partial and _rise(rule) < 0]
    found: dict[str, Hill] = {}
    for first in climbing:
        composer = Composer(first, registry)
        for following in falling:
            for hill in _over(composer, following):
                found.setdefault(format_meaning(hill.rule), hill)
    return sorted(found.values(), key=lambda hill: hill.order)


def _over(composer: Composer, following: Following) -> Iterator[Hill]:
    for composed in composer.composed(following):
        rule = composed.rule
        weights = _weights(rule)
        start, middle, end = (running(steps, weights) for steps in (rule.left, composed.middle, rule.right))
        if end < start < middle and len(flat(rule.right)) <= MOST_CALLS:
            rule = respelled(rule)
            if can_be_used(rule):
                yield Hill(rule, start, middle, end)


def composed(macros: Macros, rules: Sequence[Rule], registry: Registry) -> Iterator[Rule]:
    """What is worth a proof, the most useful first."""
    promising = (hill.rule for hill in hills(rules, registry) if survives(hill.rule, registry))
    yield from islice(promising, macros.most)


def _rise(rule: Rule) -> int:
    weights = _weights(rule)
    return running(rule.right, weights) - running(rule.left, weights)


def _weights(rule: Rule) -> frozenset[str]:
    """All inputs but the tensor that the left side reads first."""
    tensors = {given.name for given in rule.given if given.is_tensor}
    first = next((o for step in flat(rule.left) for o in _operands(step) if o in tensors), None)
    return frozenset(given.name for given in rule.given if given.name != first)


def _operands(step: Step) -> tuple[object, ...]:
    return (step.value,) if isinstance(step.value, str) else step.value.operands


def running(steps: Iterable[Step], weights: frozenset[str]) -> int:
    """What runs, those that multiply matrices counted tenfold; views cost nothing."""
    free, cost = set(weights), 0
    for step in flat(steps):
        if reads([step]) <= free:
            free.update(step.targets)
        elif isinstance(step.value, Call) and step.value.op not in VIEWS:
            cost += HEAVY_COST if is_heavy(step.value.op) else 1
    return cost
