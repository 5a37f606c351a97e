"""Whether it pays to go on measuring while an interval is still open: it holds 1, and the truth may be a small gain.

An interval shrinks with the root of the number of sittings. So what it will be at the end of the time allowed can be
told beforehand, and whoever cannot win any more need not wait for that end.
"""

from __future__ import annotations

import math

from superopt.cost.statistics import Estimate

_HOPE = 0.775
"""Two standard errors, as a part of half of a 99 % interval."""
_ENOUGH = 8
"""Sittings from which on an interval says how wide it will be."""


def may_still_win(found: Estimate, sittings: float, at_the_end: float, expected: float = 1.0) -> bool:
    """Whether a 99 % interval, now from so many sittings, could lie above 1 when there are `at_the_end` of them.

    Sittings to come are taken to bring what was found so far and two standard errors more; or the speed-up `expected`
    for reasons of its own, where what was found does not speak against it. With a centre on the losing side and
    nothing expected, it could not.
    """
    centre, below = math.log(found.value), math.log(found.value / found.low) if found.low > 0.0 else math.inf
    is_expected = 1.0 < expected <= found.high
    if centre <= 0.0 and not is_expected:
        return False
    if sittings < _ENOUGH or not math.isfinite(below):
        return True
    to_come = max(centre + _HOPE * below, math.log(expected) if is_expected else -math.inf)
    share = min(1.0, sittings / at_the_end)
    return share * centre + (1.0 - share) * to_come > below * math.sqrt(share)
