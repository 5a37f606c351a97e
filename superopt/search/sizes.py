"""Several sizes of a dynamic model: which ones are measured, and one decision for all of them.

Sizes of several dims are combined, each with each. What counts is the sum of times over all points, each times its
weight; and no point may get slower by more than 2 %, however much the others gain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from superopt.cost.result import Comparison, PairTiming, SubjectTiming, Verdict
from superopt.options import Sizes
from superopt.report import Interval, Latency, PointTiming

NOT_SLOWER = 0.98
"""Lower bound of a speed-up from which on a model counts as not slower."""


@dataclass(frozen=True)
class Point:
    """Sizes that are measured together; the weights of all points add up to 1."""

    sizes: Mapping[str, int]
    weight: float = 1.0

    @property
    def text(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.sizes.items())


def points_of(dims: Mapping[str, Sizes]) -> tuple[Point, ...]:
    """Every combination, in the order in which sizes were given; one point without sizes where none were."""
    combinations = list(itertools.product(*([(name, *pair) for pair in sizes] for name, sizes in dims.items())))
    weights = [math.prod(weight for _, _, weight in combination) for combination in combinations]
    return tuple(
        Point({name: size for name, size, _ in combination}, weight / math.fsum(weights))
        for combination, weight in zip(combinations, weights, strict=True)
    )


@dataclass(frozen=True)
class Timed:
    """One point: seconds of the original, and how many times faster the other model is."""

    point: Point
    before: float
    speedup: float
    interval: Interval | None
    verdict: Verdict


@dataclass(frozen=True)
class Decision:
    verdict: Verdict
    reason: str
    speedup: float
    interval: Interval | None


def decide(timed: Sequence[Timed]) -> Decision:
    """Faster when the weighted sum of times is, some point was confirmed to be, and none may be slower by 2 %."""
    speedup, interval = _weighed(timed)
    lost = next((t for t in timed if t.interval is not None and t.interval.high < NOT_SLOWER), None)
    if lost is not None:
        return Decision("slower", f"{lost.speedup:.2f}× at {lost.point.text}", speedup, interval)
    if interval is None:
        return Decision("not faster", "too little time: a point was timed in fewer than two sittings", speedup, None)
    if interval.high < 1.0:
        return Decision("slower", "slower over all sizes together", speedup, interval)
    open_ = next((t for t in timed if t.interval is not None and t.interval.low < NOT_SLOWER), None)
    if open_ is not None and open_.interval is not None:
        reason = f"may be slower at {open_.point.text}: {open_.speedup:.2f}× ({_text(open_.interval)})"
        return Decision("not faster", reason, speedup, interval)
    faster = sum(t.verdict == "faster" for t in timed)
    if interval.low > 1.0 and faster:
        return Decision("faster", f"confirmed at {faster} of {len(timed)} sizes, slower at none", speedup, interval)
    return Decision("not faster", f"no confirmed difference over {len(timed)} sizes together", speedup, interval)


def _weighed(timed: Sequence[Timed]) -> tuple[float, Interval | None]:
    """The speed-up of the weighted sum, with its interval.

    The time after is a sum of independent parts, each with an interval of its own. The distance from the sum to its
    bound is the root of the sum of the squared distances of the parts (Zou and Donner 2008).
    """
    total = math.fsum(t.point.weight * t.before for t in timed)
    shares = [t.point.weight * t.before / total for t in timed]
    after = math.fsum(share / t.speedup for share, t in zip(shares, timed, strict=True))
    known = [(share, t.speedup, t.interval) for share, t in zip(shares, timed, strict=True) if t.interval is not None]
    if len(known) < len(timed):
        return 1.0 / after, None
    less = math.hypot(*(share / speedup - share / bounds.high for share, speedup, bounds in known))
    more = math.hypot(*(share / bounds.low - share / speedup for share, speedup, bounds in known))
    least = after - less  # each part is at least 0, and so is their sum
    high = 1.0 / least if least > 0.0 else math.inf
    return 1.0 / after, Interval(low=1.0 / (after + more), high=high) if math.isfinite(high) else None


def weigh(points: Sequence[Point], comparisons: Sequence[Comparison]) -> Comparison:
    """The same subjects compared at each point, as one comparison of their weighted sums."""
    if len(points) == 1:
        return comparisons[0]
    first = comparisons[0]
    return Comparison(
        subjects=tuple(
            SubjectTiming(name=s.name, latency=weighed_latency(points, [c.latency(s.name) for c in comparisons]))
            for s in first.subjects
        ),
        pairs=tuple(_weighed_pair(pair.name, points, comparisons) for pair in first.pairs),
        seconds=math.fsum(c.seconds for c in comparisons),
        one_at_a_time=any(c.one_at_a_time for c in comparisons),
    )


def _weighed_pair(name: str, points: Sequence[Point], comparisons: Sequence[Comparison]) -> PairTiming:
    pairs = [c.pair(name) for c in comparisons]
    timed: list[Timed] = []
    failure = ""
    for point, pair, comparison in zip(points, pairs, comparisons, strict=True):
        before = comparison.subjects[0].latency
        if pair.speedup is None or before is None:
            failure = failure or f"{pair.reason} (at {point.text})"
        else:
            timed.append(Timed(point, before.median, pair.speedup, pair.interval, pair.verdict))
    counts = {"sittings": sum(p.sittings for p in pairs), "pairs": sum(p.pairs for p in pairs)}
    if failure:
        return PairTiming(name=name, verdict="not faster", reason=failure, speedup=None, interval=None, **counts)
    found = decide(timed)
    return PairTiming(
        name=name, verdict=found.verdict, reason=found.reason, speedup=found.speedup, interval=found.interval, **counts
    )


def weighed_latency(points: Sequence[Point], latencies: Sequence[Latency | None]) -> Latency | None:
    """The weighted sum of medians; None where a point has none."""
    known = [(p.weight, latency) for p, latency in zip(points, latencies, strict=True) if latency is not None]
    if len(known) < len(points):
        return None
    median = math.fsum(weight * latency.median for weight, latency in known)
    below = math.hypot(*(weight * (latency.median - latency.interval.low) for weight, latency in known))
    above = math.hypot(*(weight * (latency.interval.high - latency.median) for weight, latency in known))
    return Latency(
        median=median,
        interval=Interval(low=median - below, high=median + above),
        spread=math.fsum(weight * latency.median * latency.spread for weight, latency in known) / median,
        runs=sum(latency.runs for _, latency in known),
    )


def rows(points: Sequence[Point], comparisons: Sequence[Comparison], name: str) -> list[PointTiming]:
    """Each point as the report shows it; nothing where there is only one."""
    found: list[PointTiming] = []
    for point, comparison in zip(points, comparisons, strict=True) if len(points) > 1 else ():
        pair = next((p for p in comparison.pairs if p.name == name), None)
        found.append(
            PointTiming(
                sizes=dict(point.sizes),
                weight=point.weight,
                before=comparison.subjects[0].latency,
                after=comparison.latency(name),
                speedup=None if pair is None else pair.speedup,
                speedup_interval=None if pair is None else pair.interval,
            )
        )
    return found


def slower_point(points: Iterable[PointTiming]) -> PointTiming | None:
    """The first point at which a model may be slower by more than 2 %, or was not timed."""
    for point in points:
        if point.speedup_interval is None or point.speedup_interval.low < NOT_SLOWER:
            return point
    return None


def _text(interval: Interval) -> str:
    return f"{interval.low:.2f} to {interval.high:.2f}"
