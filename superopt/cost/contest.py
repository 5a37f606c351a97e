"""Tells faster from slower, so that equal models are practically never told apart.

Sittings come in twos that open the models in opposite order.

    explore   sittings until the 99 % interval of a speed-up excludes 1, or lies inside what is negligible
    confirm   those that were told apart sit again, a number of times fixed beforehand; verdict, speed-up and its
              95 % interval, which must exclude 1 once more, come from these sittings alone

Whoever looks again and again until something differs finds differences that are not there. They do not survive
a second, independent look.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from superopt.cost.result import Comparison, PairTiming, SubjectTiming, Verdict
from superopt.cost.sitting import Bench, Sitting
from superopt.cost.statistics import Estimate, median_estimate, ratio_estimate, spread
from superopt.errors import CannotRun
from superopt.report import Interval, Latency

Phase: TypeAlias = Literal["explore", "confirm"]

_FIRST = 0
_SURE = 0.99
_REPORTED = 0.95
_EXPLORE_SHARE = 0.4  # of the time left: confirming takes longer than finding
_CONFIRM_GROWTH = 1.5  # sittings to confirm, for each that it took to find
_LEAST_TO_TELL = 4
_MOST_SITTINGS = 40
_ATTEMPTS = 3
_PRECISE = 0.02  # width of a median's interval that asks for no more


@dataclass(frozen=True)
class Method:
    """How long and how finely to measure."""

    seconds: float = 20.0  # for the whole comparison; a sitting that has begun is finished
    sample_seconds: float = 0.004  # shorter runs are repeated until a sample lasts as long
    negligible: float = 0.005  # differences inside this are not looked for any longer
    seed: int = 0


@dataclass(frozen=True)
class Progress:
    phase: Phase
    sittings: int
    seconds: float
    limit: float


@dataclass
class _Evidence:
    log_ratios: list[float] = field(default_factory=list[float])
    pairs: int = 0

    def __len__(self) -> int:
        return len(self.log_ratios)

    def add(self, sitting: Sitting, subject: int) -> None:
        self.log_ratios.append(sitting.log_ratio(_FIRST, subject))
        self.pairs += min(len(sitting.samples[_FIRST]), len(sitting.samples[subject]))

    def extend(self, other: _Evidence) -> None:
        self.log_ratios += other.log_ratios
        self.pairs += other.pairs

    def speedup(self, confidence: float) -> Estimate:
        return ratio_estimate(self.log_ratios, confidence)


@dataclass
class _Challenger:
    subject: int
    explored: _Evidence = field(default_factory=_Evidence)
    told_apart: bool = False
    verdict: Verdict | None = None
    reason: str = ""
    evidence: _Evidence = field(default_factory=_Evidence)

    def decide(self, verdict: Verdict, reason: str, evidence: _Evidence) -> None:
        self.verdict, self.reason, self.evidence = verdict, reason, evidence


class Contest:
    """The first subject against the others."""

    def __init__(
        self,
        names: Sequence[str],
        bench: Bench,
        method: Method,
        together: bool,
        tell: Callable[[Progress], None] | None = None,
    ) -> None:
        self._names, self._bench, self._method = names, bench, method
        self._together, self._tell = together, tell
        self._random = random.Random(method.seed)
        self._samples: list[list[float]] = [[] for _ in names]
        self._runs = [0] * len(names)
        self._sittings = 0
        self._challengers = [_Challenger(i) for i in range(1, len(names))]
        self._start = bench.clock()
        self._deadline = self._start + method.seconds

    def run(self) -> Comparison:
        if not self._challengers:
            self._alone()
        for _ in range(_ATTEMPTS):
            apart = self._explore()
            if not apart:
                break
            self._confirm(apart)
        for c in self._undecided():
            c.decide("not faster", self._why_undecided(c), c.explored)
        return self._comparison()

    def _undecided(self) -> list[_Challenger]:
        return [c for c in self._challengers if c.verdict is None]

    def _alone(self) -> None:
        while self._sittings < _MOST_SITTINGS and self._bench.clock() < self._deadline:
            self._sit_twice("explore", [])
            found = median_estimate(self._samples[_FIRST], _REPORTED)
            if self._sittings >= _LEAST_TO_TELL and found.high - found.low < _PRECISE * found.value:
                break

    def _explore(self) -> list[_Challenger]:
        """Sits with those that are undecided; returns those that were told apart."""
        now = self._bench.clock()
        until = now + _EXPLORE_SHARE * (self._deadline - now)
        playing = self._undecided()
        while playing and self._has_time(until, least=min(len(c.explored) for c in playing)):
            for sitting in self._sit_twice("explore", playing):
                for c in playing:
                    if c.verdict is None:
                        c.explored.add(sitting, c.subject)
            playing = [c for c in playing if not self._is_explored(c)]
        return [c for c in self._undecided() if c.told_apart]

    def _has_time(self, until: float, least: int) -> bool:
        """Slow models may explore past their share, up to the fewest sittings that tell anything."""
        return self._bench.clock() < (self._deadline if least < _LEAST_TO_TELL else until)

    def _is_explored(self, c: _Challenger) -> bool:
        if c.verdict is not None:
            return True
        c.told_apart = c.explored.speedup(_SURE).excludes(1.0)
        likely, band = c.explored.speedup(_REPORTED), 1.0 + self._method.negligible
        if len(c.explored) >= _LEAST_TO_TELL and 1.0 / band < likely.low and likely.high < band:
            c.decide("not faster", f"any difference is under {self._method.negligible:.1%}", c.explored)
            return True
        return c.told_apart or len(c.explored) >= _MOST_SITTINGS

    def _confirm(self, challengers: Sequence[_Challenger]) -> None:
        fresh = {c.subject: _Evidence() for c in challengers}
        wanted = {c.subject: max(_LEAST_TO_TELL, math.ceil(_CONFIRM_GROWTH * len(c.explored))) for c in challengers}
        playing = list(challengers)
        while playing and self._bench.clock() < self._deadline:
            for sitting in self._sit_twice("confirm", playing):
                for c in playing:
                    if c.verdict is None:
                        fresh[c.subject].add(sitting, c.subject)
            playing = [c for c in playing if c.verdict is None and len(fresh[c.subject]) < wanted[c.subject]]
        for c in challengers:
            if c.verdict is None:
                self._judge(c, fresh[c.subject])

    def _judge(self, c: _Challenger, fresh: _Evidence) -> None:
        was_faster = c.explored.speedup(_SURE).value > 1.0
        c.told_apart = False
        c.explored.extend(fresh)
        if len(fresh) < _LEAST_TO_TELL:
            return
        found = fresh.speedup(_REPORTED)
        if found.excludes(1.0) and (found.value > 1.0) == was_faster:
            reason = f"confirmed by {len(fresh)} fresh sittings"
            c.decide("faster" if was_faster else "slower", reason, fresh)

    def _sit_twice(self, phase: Phase, challengers: Sequence[_Challenger]) -> list[Sitting]:
        """Two sittings in opposite order; a challenger that cannot run leaves the contest."""
        order = [_FIRST, *(c.subject for c in challengers)]
        self._random.shuffle(order)
        sittings: list[Sitting] = []
        for _ in range(2):
            sitting = self._bench.sit(order, self._together, self._deadline)
            self._record(sitting)
            sittings.append(sitting)
            order = [subject for subject in reversed(order) if subject not in sitting.failed]
            if self._tell is not None:
                seconds = self._bench.clock() - self._start
                self._tell(Progress(phase, self._sittings, seconds, self._method.seconds))
            if self._bench.clock() >= self._deadline:
                break
        return sittings

    def _record(self, sitting: Sitting) -> None:
        self._sittings += 1
        for subject, samples in sitting.samples.items():
            self._samples[subject] += samples
            self._runs[subject] += sitting.runs(subject)
        for subject, why in sitting.failed.items():
            if subject == _FIRST:
                raise CannotRun(why)
            self._challengers[subject - 1].decide("not faster", why, _Evidence())

    def _why_undecided(self, c: _Challenger) -> str:
        if len(c.explored) < 2 * _LEAST_TO_TELL:
            return f"too little time: {len(c.explored)} sittings in {self._method.seconds:g} s"
        return f"no confirmed difference in {len(c.explored)} sittings"

    def _comparison(self) -> Comparison:
        return Comparison(
            subjects=tuple(
                SubjectTiming(name=name, latency=_latency(samples, runs))
                for name, samples, runs in zip(self._names, self._samples, self._runs, strict=True)
            ),
            pairs=tuple(_pair_timing(self._names[c.subject], c) for c in self._challengers),
            seconds=self._bench.clock() - self._start,
            one_at_a_time=not self._together,
        )


def _latency(samples: list[float], runs: int) -> Latency | None:
    if not samples:
        return None
    found = median_estimate(samples, _REPORTED)
    interval = Interval(low=found.low, high=found.high)
    return Latency(median=found.value, interval=interval, spread=spread(samples), runs=runs)


def _pair_timing(name: str, c: _Challenger) -> PairTiming:
    found = c.evidence.speedup(_REPORTED) if c.evidence else None
    bounded = found is not None and math.isfinite(found.high)
    return PairTiming(
        name=name,
        verdict=c.verdict or "not faster",
        reason=c.reason,
        speedup=None if found is None else found.value,
        interval=Interval(low=found.low, high=found.high) if found and bounded else None,
        sittings=len(c.evidence),
        pairs=c.evidence.pairs,
    )
