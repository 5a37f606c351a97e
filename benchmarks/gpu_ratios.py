"""One method's time over superopt's: measured side by side where that was possible, else put together."""

from __future__ import annotations

import math
from collections.abc import Mapping

from benchmarks.gpu_cells import BEST, OURS, Cell, Key, Place
from benchmarks.records import Ratio
from superopt.report import Interval

Cells = Mapping[Key, Cell]


def composed(first: Ratio, second: Ratio) -> Ratio:
    """The product of two ratios that were measured independently: relative errors add up in squares."""
    value = first.value * second.value
    bounds = [ratio for ratio in (first, second) if ratio.low is None or ratio.high is None]
    if bounds:
        return Ratio(value=value)
    below = math.hypot(*(math.log(r.value / r.low) for r in (first, second) if r.low))
    above = math.hypot(*(math.log(r.high / r.value) for r in (first, second) if r.high))
    return Ratio(value=value, low=value * math.exp(-below), high=value * math.exp(above))


def over_ours(cells: Cells, place: Place, method: str) -> Ratio | None:
    """None where one of the two has no time. What ran with options, a CUDA graph above all, is held against ours by way
    of the original with its best options, which ran beside both; where it did not, by the two times themselves: they
    depend on the device alone, and a default session's on how fast the host starts kernels, which no two machines with
    the same device have in common."""
    ours, other = cells.get((*place, OURS)), cells.get((*place, method))
    if ours is None or other is None or ours.median is None or other.median is None:
        return None
    if method == OURS:
        return Ratio(value=1.0, low=1.0, high=1.0)
    if other.over_ours is not None and other.code == ours.code:
        return _ratio(other.over_ours, other.over_ours_interval)
    best = cells.get((*place, BEST))
    if other.over_best is not None and best is not None and best.over_ours is not None and best.code == ours.code:
        theirs = _ratio(other.over_best, other.over_best_interval)
        return composed(theirs, _ratio(best.over_ours, best.over_ours_interval))
    if other.over_default is not None and ours.over_default is not None and not other.options:
        theirs = _ratio(other.over_default, other.over_default_interval)
        return composed(theirs, _ratio(ours.over_default, ours.over_default_interval).inverse())
    return composed(_median(other), _median(ours).inverse())


def _ratio(value: float, interval: Interval | None) -> Ratio:
    return Ratio(value=value, low=interval.low if interval else None, high=interval.high if interval else None)


def _median(cell: Cell) -> Ratio:
    """A time as a ratio to one second."""
    assert cell.median is not None
    return _ratio(cell.median, cell.interval)
