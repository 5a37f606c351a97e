"""Programs around one linear operator that no other family thought of: all short chains that move data before and
after it, with the attributes of its windows scaled and its filters regrouped to fit.

Everything with a result of the right shape is a candidate; what its elements are is found out by numbers. That is done
once for many programs: on a small image, of a size that leaves the same remainders. What is right in at least half of
that is a mutant; where it is wrong at its own size is found as for all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import gcd, lcm

import numpy as np

from superopt.ops.domains import PRIME, Field
from superopt.ops.evaluate import Array
from superopt.ops.formula import Illegal, NotCovered
from superopt.ops.registry import Registry
from superopt.partial.bilinear import Bilinear, bilinear
from superopt.partial.families.guided import GUIDED
from superopt.partial.plans import Plan, divided, plans, written
from superopt.partial.program import Mutant, Original, Shape
from superopt.partial.program import shapes as shapes_of
from superopt.partial.running import run, work
from superopt.partial.terms import Terms
from superopt.rewrite.expression import Literal, evaluate
from superopt.rewrite.rule import Block, Given, Rule, Step
from superopt.verify.agree import boxes

MOST_TRIED = 200
"""Candidates that are looked at for one program."""
MOST_KEPT = 12
LARGEST_SHARE, MOST_BOXES = 0.5, 8
"""Part of the small result that may be wrong, and into how many boxes it may fall."""
SMALLEST = 8
"""Elements of an axis of the small image, at least."""
HEAVY, MOST_READ = 1 << 21, 1 << 27
"""Numbers that a run of the small program may read, padding and all, and those that all candidates may read together:
some seconds."""


def enumerated(original: Original, shapes: Mapping[str, Shape], registry: Registry) -> Iterator[Mutant]:
    subject = bilinear(original, registry)
    if subject is None:
        return
    for plan in _good(*_small(subject, shapes), registry):
        fitted = divided(original, plan, registry)
        lines = None if fitted is None else written(fitted, plan)
        if fitted is not None and lines is not None:
            rule = fitted.original.rule(lines, f"Moves around one operator: {plan}.")
            yield Mutant("enumerated", fitted.original, rule)


def _small(subject: Bilinear, shapes: Mapping[str, Shape]) -> tuple[tuple[Given, ...], tuple[Step, ...]]:
    """The same program in numbers, of few channels and an image as small as its windows let it be."""
    period = lcm(2, *subject.windows.get("strides", ()), *subject.windows.get("dilations", ()))
    sizes = {name: gcd(n, 2 * period) for name, n in subject.original.sizes.items()}
    x, k, *_ = subject.names
    image: dict[int, int] = {}
    for axis, n in enumerate(shapes[x][2:] if subject.windows else (), 2):
        reach = (shapes[k][axis] - 1) * subject.windows["dilations"][axis - 2] + 1
        least = max(SMALLEST, 2 * reach, 2 * period)
        image[axis] = n if n <= least else least + (n - least) % (2 * period)
    given: list[Given] = []
    for g in subject.original.given:
        dims = [evaluate(d, sizes) for d in g.dims if not isinstance(d, Block)]
        if g.name == x:
            dims = [image.get(axis, n) for axis, n in enumerate(dims)]
        given.append(replace(g, dims=tuple(Literal(str(n)) for n in dims)))
    return tuple(given), subject.original.pinned(subject.original.sizes).steps


@cache
def _good(given: tuple[Given, ...], steps: tuple[Step, ...], registry: Registry) -> tuple[Plan, ...]:
    """Plans for a small program that are right in most of its result, the best first: of those that do the same one,
    and none that does what another family does. None at all for a program that is not small."""
    small = Original(given, steps, {})
    subject = bilinear(small, registry)
    if subject is None or work(small, registry) > HEAVY:
        return ()
    looks = _Looks(small, registry)
    for family in GUIDED:
        for mutant in family(small, shapes_of(small, registry), registry):
            looks.at(mutant.rule)
    shares: dict[Plan, float] = {}
    for plan in plans(subject)[:MOST_TRIED]:
        lines = written(subject, plan)
        share = None if lines is None else looks.at(small.rule(lines, ""), plan)
        if share is not None and share <= LARGEST_SHARE:
            shares[plan] = share
    return tuple(sorted(shares, key=lambda plan: shares[plan])[:MOST_KEPT])


class _Looks:
    """Mutants of one program that were looked at."""

    def __init__(self, small: Original, registry: Registry) -> None:
        self.registry = registry
        self._meant: list[Array] | None = None
        self._terms = Terms()
        self._inputs = {g.name: self._terms.term(("input", g.name)) for g in small.given}
        self._seen: set[object] = set()
        self._read = 0

    def at(self, rule: Rule, plan: Plan | None = None) -> float | None:
        """The part of the result that is wrong; None where that was seen before: the same steps, the same numbers by
        moves of the same axes, or the same wrong numbers that another family gets by moving data alone. None also where
        too much would have to be read to find out."""
        steps = tuple(self._terms.run(rule.right, self._inputs, {})[name] for name in rule.results)
        if steps in self._seen:
            return None
        if self._meant is None:
            self._meant = self._results(rule, rule.left)
        try:
            self._read += work(Original(rule.given, rule.right, {}), self.registry)
            if self._read > MOST_READ:
                return None
            found = self._results(rule, rule.right)
        except (Illegal, NotCovered):
            return None
        masks = [a != b for a, b in zip(found, self._meant, strict=True)]
        share = float(np.mean([mask.mean() for mask in masks]))
        numbers = tuple(array.tobytes() for array in found)
        theme = None if plan is None else plan.theme
        is_move = plan is not None and not plan.filters and plan.copies == 1
        if (numbers, theme) in self._seen or (share and is_move and (numbers, None) in self._seen):
            return None
        self._seen |= {steps, (numbers, theme)}
        return share if share > LARGEST_SHARE or sum(len(boxes(mask)) for mask in masks) <= MOST_BOXES else 1.0

    def _results(self, rule: Rule, side: Sequence[Step]) -> list[Array]:
        rng = np.random.default_rng(0)
        (found,) = run(rule, [side], {}, self.registry, Field(), lambda shape, _: rng.integers(0, PRIME, shape))
        return list(found.values())
