"""Many instances of a rule at small random sizes and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from superopt.ops.formula import Illegal
from superopt.ops.registry import Registry
from superopt.rewrite.program import block_ranks
from superopt.rewrite.rule import Rule
from superopt.verify.drawing import NOTHING_SAID, SMALL, Draws, Instance

TRIES_FOR_EACH = 25
LARGE = 9
"""The largest size that is drawn every other time where nothing is legal among the first (filters of 2h + 1), and where
elements are all the same: means of 3, 5, 6 and 7 of them are rounded."""
TRIES_OF_SMALL = 24
TRIES_OF_ONE_KIND = 48
"""After so many that all fail alike, as the smallest sizes do: no sizes are legal for that number of axes."""
TRIES_NEARBY = 60
REDRAWN = 4
"""Of an instance's sizes and attributes, at most so many are drawn anew for one near it."""


def instances(
    rule: Rule,
    registry: Registry,
    *,
    wanted: int,
    seed: int = 0,
    poisoned: str | None = None,
    poison: float = np.nan,
    reals: float | None = None,
    level: bool = False,
    nearby: bool = False,
) -> Iterator[Instance]:
    """Instances for each number of axes of the rule's blocks, `wanted` of each where that many are found.

    `poisoned` names an input that gets a NaN, or another `poison`, in one place; `reals` is what every number given by
    name is, instead of any; where inputs are `level`, the elements of each are all the same. Where conditions are such
    that few draws satisfy them, further ones come from `nearby`.
    """
    for ranks in block_ranks(rule):
        draws = Draws(rule, registry, ranks, poisoned, poison, reals, level)
        found: list[Mapping[str, int]] = []
        for instance in _drawn(draws, wanted, seed):
            found.append(instance.numbers.integers)
            yield instance
        if nearby and found:
            yield from _nearby(draws, found, wanted, seed)


def _drawn(draws: Draws, wanted: int, seed: int) -> Iterator[Instance]:
    """Everything drawn anew each time."""
    found, reasons = 0, set[str]()
    for attempt in range(wanted * TRIES_FOR_EACH):
        small = not draws.level and (found or attempt < TRIES_OF_SMALL or attempt % 2)
        try:
            instance = draws.instance([seed, attempt, *draws.ranks.values()], most=SMALL if small else LARGE)
        except NOTHING_SAID as error:
            reasons.add(str(error) if isinstance(error, Illegal) else "")
            hopeless = not found and attempt + 1 == TRIES_OF_ONE_KIND and len(reasons) == 1
            if hopeless and draws.why_not() in reasons:
                return
            continue
        yield instance
        found += 1
        if found == wanted:
            return


def _nearby(draws: Draws, found: list[Mapping[str, int]], wanted: int, seed: int) -> Iterator[Instance]:
    """From what was found on, up to `wanted`: a few sizes, attributes and choices of one are drawn anew, and values."""
    rng = np.random.default_rng([seed, *draws.ranks.values()])
    for attempt in range((wanted - len(found)) * TRIES_NEARBY):
        known = found[int(rng.integers(len(found)))]
        redrawn = (
            {str(name) for name in rng.choice(list(known), int(rng.integers(1, REDRAWN + 1)))} if known else set[str]()
        )
        told = {name: value for name, value in known.items() if name not in redrawn}
        try:
            instance = draws.instance([seed, wanted * TRIES_FOR_EACH + attempt, *draws.ranks.values()], told=told)
        except NOTHING_SAID:
            continue
        found.append(instance.numbers.integers)
        yield instance
        if len(found) == wanted:
            return
