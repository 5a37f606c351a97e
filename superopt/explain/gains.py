"""What each rule gained.

The clock times whole regions; a region's gain is shared among the rewrites in it as the predictor thinks they deserve.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from superopt.report import Rewrite


@dataclass(frozen=True)
class Step:
    """All rewrites of one name. `gained` is microseconds, None where nobody timed or predicted it."""

    name: str
    count: int
    gained: float | None
    measured: bool


def steps(rewrites: Sequence[Rewrite]) -> list[Step]:
    """By name, the largest gain first, those without a time at the end."""
    groups: dict[str, list[tuple[float | None, bool]]] = defaultdict(list)
    for rewrite, gain in zip(rewrites, gains(rewrites), strict=True):
        groups[rewrite.name].append(gain)
    found: list[Step] = []
    for name, group in groups.items():
        known = [(gain, measured) for gain, measured in group if gain is not None]
        total = sum(gain for gain, _ in known) if known else None
        found.append(Step(name, len(group), total, all(measured for _, measured in known)))
    return sorted(found, key=lambda s: (s.gained is None, -(s.gained or 0.0), -s.count, s.name))


def gains(rewrites: Sequence[Rewrite]) -> list[tuple[float | None, bool]]:
    """For each rewrite the microseconds it gained, and whether a clock stands behind them."""
    regions: dict[object, list[int]] = defaultdict(list)
    for i, rewrite in enumerate(rewrites):
        regions[_region(rewrite, i)].append(i)
    found: list[tuple[float | None, bool]] = [(None, False)] * len(rewrites)
    for members in regions.values():
        predicted = [_predicted(rewrites[i]) for i in members]
        measured = _measured(rewrites[members[0]])
        if measured is None:
            shares = [(gain, False) for gain in predicted]
        else:
            weights = [max(gain or 0.0, 0.0) for gain in predicted]
            total = sum(weights)
            shares = [(measured * (w / total if total else 1 / len(members)), True) for w in weights]
        for i, share in zip(members, shares, strict=True):
            found[i] = share
    return found


def rule_numbers(rewrites: Iterable[Rewrite]) -> Mapping[str, int]:
    """Numbers for anchors: names are not ours to use there."""
    return {name: i for i, name in enumerate(dict.fromkeys(rewrite.name for rewrite in rewrites), 1)}


def _region(rewrite: Rewrite, position: int) -> object:
    """Equal regions share a number, not their nodes; what is of no region stands alone."""
    return position if rewrite.region is None else (rewrite.region, tuple(rewrite.nodes))


def _measured(rewrite: Rewrite) -> float | None:
    if rewrite.measured_us_before is None or rewrite.measured_us_after is None:
        return None
    return rewrite.measured_us_before - rewrite.measured_us_after


def _predicted(rewrite: Rewrite) -> float | None:
    if rewrite.predicted_us_before is None or rewrite.predicted_us_after is None:
        return None
    return rewrite.predicted_us_before - rewrite.predicted_us_after
