"""Tells faster from slower, so that equal models are practically never told apart.

A contest goes in sittings. In a sitting every model is opened and warmed up; then come rounds, in each of which every
model is sampled once, in an order that the next round reverses: drift and position favour nobody.

    explore   rounds until the 99 % interval of a speed-up excludes 1, or lies inside what is negligible
    confirm   those that were told apart sit again, freshly opened in the opposite order, for a number of rounds
              fixed beforehand; verdict, speed-up and interval come from these rounds alone

Whoever looks again and again until something differs finds differences that are not there, and one session may be
lucky with its memory addresses. Neither survives a second, independent sitting.
"""

from __future__ import annotations

import contextlib
import gc
import math
import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from superopt.cost.result import Comparison, PairTiming, SubjectTiming, Verdict
from superopt.cost.stage import Clock, Lane, Runner, Sample, Stage
from superopt.cost.statistics import Estimate, median_estimate, speedup_estimate, spread
from superopt.errors import CannotRun
from superopt.report import Interval, Latency

Phase: TypeAlias = Literal["explore", "confirm"]

_FIRST = 0
_EXPLORE_CONFIDENCE = 0.99
_CONFIDENCE = 0.95
_EXPLORE_SHARE = 0.4  # of the time left; confirming takes longer than finding
_WARM_UP_SHARE = 0.1
_ATTEMPTS = 3
_NEXT_LOOK = 1.3
_CONFIRM_ROUNDS = 1.5  # times the rounds it took to tell apart
_PRECISE = 0.02  # width of a median's interval that needs no more samples


@dataclass(frozen=True)
class Method:
    """How long and how finely to measure."""

    seconds: float = 20.0  # for the whole comparison; a round that has begun is finished
    sample_seconds: float = 0.004  # shorter runs are repeated until a sample lasts as long
    least_pairs: int = 8  # the fewest whose 99 % interval can exclude anything
    most_pairs: int = 400  # of one exploration
    negligible: float = 0.005  # differences inside this are not looked for any longer
    seed: int = 0


@dataclass(frozen=True)
class Progress:
    phase: Phase
    rounds: int
    seconds: float
    limit: float


@dataclass
class _Pairs:
    """Seconds of the first subject and of another, sampled in the same rounds."""

    first: list[float] = field(default_factory=list[float])
    other: list[float] = field(default_factory=list[float])

    def __len__(self) -> int:
        return len(self.first)

    def add(self, seconds: dict[int, float], other: int) -> None:
        self.first.append(seconds[_FIRST])
        self.other.append(seconds[other])

    def extend(self, pairs: _Pairs) -> None:
        self.first += pairs.first
        self.other += pairs.other

    def speedup(self, confidence: float) -> Estimate:
        return speedup_estimate(self.first, self.other, confidence)


@dataclass
class _Challenger:
    subject: int
    pool: _Pairs = field(default_factory=_Pairs)
    next_look: int = 0
    told_apart: bool = False
    verdict: Verdict | None = None
    reason: str = ""
    evidence: _Pairs = field(default_factory=_Pairs)

    def decide(self, verdict: Verdict, reason: str, evidence: _Pairs) -> None:
        self.verdict, self.reason, self.evidence = verdict, reason, evidence


_Playing: TypeAlias = "dict[int, _Challenger]"


class Contest:
    """The first subject against the others. `open_runner(i)` opens the i-th; it and `clock` alone touch the world."""

    def __init__(
        self,
        names: Sequence[str],
        open_runner: Callable[[int], Runner],
        method: Method,
        together: bool,
        clock: Clock,
        tell: Callable[[Progress], None] | None = None,
    ) -> None:
        self._names, self._open_runner, self._method = names, open_runner, method
        self._together, self._clock, self._tell = together, clock, tell
        self._random = random.Random(method.seed)
        self._samples: list[list[float]] = [[] for _ in names]
        self._runs = [0] * len(names)
        self._challengers = [_Challenger(i, next_look=method.least_pairs) for i in range(1, len(names))]
        self._start = clock()
        self._deadline = self._start + method.seconds

    def run(self) -> Comparison:
        if not self._challengers:
            self._alone()
        for _ in range(_ATTEMPTS):
            apart = self._explore(self._undecided()) if self._undecided() else []
            if not apart:
                break
            self._confirm(apart)
        for c in self._undecided():
            c.decide("not faster", self._why_undecided(c), c.pool)
        return self._comparison()

    def _undecided(self) -> list[_Challenger]:
        return [c for c in self._challengers if c.verdict is None]

    def _alone(self) -> None:
        with contextlib.closing(self._rounds("explore", {})) as rounds:
            for _ in rounds:
                samples = self._samples[_FIRST]
                if len(samples) >= self._method.most_pairs:
                    return
                if len(samples) >= 3 * self._method.least_pairs:
                    estimate = median_estimate(samples, _CONFIDENCE)
                    if estimate.high - estimate.low < _PRECISE * estimate.value:
                        return

    def _explore(self, challengers: list[_Challenger]) -> list[_Challenger]:
        """Those that were told apart."""
        now = self._clock()
        until = now + _EXPLORE_SHARE * (self._deadline - now)
        playing = {c.subject: c for c in challengers}
        with contextlib.closing(self._rounds("explore", playing)) as rounds:
            for seconds in rounds:
                for c in list(playing.values()):
                    c.pool.add(seconds, c.subject)
                    if self._is_explored(c):
                        del playing[c.subject]
                if self._clock() >= until and all(len(c.pool) >= self._method.least_pairs for c in playing.values()):
                    break
        return [c for c in challengers if c.told_apart and c.verdict is None]

    def _is_explored(self, c: _Challenger) -> bool:
        if len(c.pool) >= c.next_look:
            c.next_look = math.ceil(_NEXT_LOOK * len(c.pool))
            probable, band = c.pool.speedup(_CONFIDENCE), 1.0 + self._method.negligible
            if 1.0 / band < probable.low and probable.high < band:
                c.decide("not faster", f"any difference is under {self._method.negligible:.1%}", c.pool)
                return True
            sure = c.pool.speedup(_EXPLORE_CONFIDENCE)
            c.told_apart = not sure.low <= 1.0 <= sure.high
            return c.told_apart
        return len(c.pool) >= self._method.most_pairs

    def _confirm(self, challengers: list[_Challenger]) -> None:
        fresh = {c.subject: _Pairs() for c in challengers}
        playing = {c.subject: c for c in challengers}
        with contextlib.closing(self._rounds("confirm", playing)) as rounds:
            for seconds in rounds:
                for c in list(playing.values()):
                    fresh[c.subject].add(seconds, c.subject)
                    if len(fresh[c.subject]) >= _CONFIRM_ROUNDS * len(c.pool):
                        del playing[c.subject]
        for c in challengers:
            if c.verdict is None:
                self._judge(c, fresh[c.subject])

    def _judge(self, c: _Challenger, fresh: _Pairs) -> None:
        was_faster = c.pool.speedup(_CONFIDENCE).value > 1.0
        c.told_apart = False
        c.pool.extend(fresh)
        if not fresh:
            return
        found = fresh.speedup(_CONFIDENCE)
        if was_faster and found.low > 1.0:
            c.decide("faster", f"confirmed by {len(fresh)} fresh pairs", fresh)
        elif not was_faster and found.high < 1.0:
            c.decide("slower", f"confirmed by {len(fresh)} fresh pairs", fresh)

    def _rounds(self, phase: Phase, playing: _Playing) -> Generator[dict[int, float]]:
        """Rounds of one sitting, until time is up or the last challenger has left."""
        alone = not playing
        order = [_FIRST, *playing]
        if phase == "confirm":
            order.reverse()
        count = 0
        stage = Stage(self._open_lane, self._together)
        with contextlib.closing(stage), _without_garbage_collection():
            if self._together:
                self._round(stage, order, playing)
            while (playing or alone) and self._clock() < self._deadline:
                if count % 2 == 0:
                    order = self._random.sample([_FIRST, *playing], 1 + len(playing))
                else:
                    order.reverse()
                samples = self._round(stage, order, playing)
                for subject, sample in samples.items():
                    self._samples[subject].append(sample.seconds)
                    self._runs[subject] += sample.runs
                count += 1
                if self._tell is not None:
                    self._tell(Progress(phase, count, self._clock() - self._start, self._method.seconds))
                yield {subject: sample.seconds for subject, sample in samples.items()}

    def _round(self, stage: Stage, order: Sequence[int], playing: _Playing) -> dict[int, Sample]:
        """One sample of each; a challenger that cannot run leaves the contest."""
        samples: dict[int, Sample] = {}
        for subject in order:
            if subject != _FIRST and subject not in playing:
                continue
            try:
                samples[subject] = stage.sample(subject)
            except CannotRun as error:
                if subject == _FIRST:
                    raise
                playing.pop(subject).decide("not faster", str(error), _Pairs())
        return samples

    def _open_lane(self, subject: int) -> Lane:
        limit = _WARM_UP_SHARE * self._method.seconds / len(self._names)
        return Lane(self._open_runner(subject), self._clock, self._method.sample_seconds, limit)

    def _why_undecided(self, c: _Challenger) -> str:
        pairs = len(c.pool)
        if pairs < self._method.least_pairs:
            return f"only {pairs} pairs in {self._method.seconds:g} s"
        return f"no confirmed difference in {pairs} pairs"

    def _comparison(self) -> Comparison:
        return Comparison(
            subjects=tuple(
                SubjectTiming(name=name, latency=_latency(samples, runs))
                for name, samples, runs in zip(self._names, self._samples, self._runs, strict=True)
            ),
            pairs=tuple(_pair_timing(self._names[c.subject], c) for c in self._challengers),
            seconds=self._clock() - self._start,
            one_at_a_time=not self._together,
        )


def _latency(samples: list[float], runs: int) -> Latency | None:
    if not samples:
        return None
    estimate = median_estimate(samples, _CONFIDENCE)
    interval = Interval(low=estimate.low, high=estimate.high)
    return Latency(median=estimate.value, interval=interval, spread=spread(samples), runs=runs)


def _pair_timing(name: str, c: _Challenger) -> PairTiming:
    assert c.verdict is not None
    estimate = c.evidence.speedup(_CONFIDENCE) if c.evidence else None
    known = estimate is not None and math.isfinite(estimate.high)
    return PairTiming(
        name=name,
        verdict=c.verdict,
        reason=c.reason,
        speedup=None if estimate is None else estimate.value,
        interval=Interval(low=estimate.low, high=estimate.high) if estimate and known else None,
        pairs=len(c.evidence),
    )


@contextlib.contextmanager
def _without_garbage_collection() -> Generator[None]:
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
