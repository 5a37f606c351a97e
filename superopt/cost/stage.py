"""Who is open while the clock runs, and how one sample is taken."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Protocol, TypeAlias

from superopt.runtime.heap import give_back_free_memory

Clock: TypeAlias = Callable[[], float]

_WINDOW_SECONDS = 0.02
_WINDOW_RUNS = 2
_NO_LONGER_IMPROVING = 0.98
_MOST_REPEATS = 10_000
_SAMPLES_PER_VISIT = 3


class Runner(Protocol):
    """A model ready to run, its inputs in place."""

    def run(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Sample:
    """Seconds of one run, and over how many runs they were taken."""

    seconds: float
    runs: int


class Lane:
    """One open, warm model. Short runs are repeated inside a sample, after one that only refills the caches."""

    def __init__(self, runner: Runner, clock: Clock, sample_seconds: float, warm_up_limit: float) -> None:
        self._runner, self._clock = runner, clock
        seconds = warm_up(runner.run, clock, warm_up_limit)
        self.repeats = min(_MOST_REPEATS, max(1, math.ceil(sample_seconds / max(seconds, 1e-9))))

    def sample(self) -> float:
        """Seconds of one run."""
        run, repeats = self._runner.run, self.repeats
        if repeats > 1:
            run()
        start = self._clock()
        for _ in range(repeats):
            run()
        return (self._clock() - start) / repeats

    def close(self) -> None:
        self._runner.close()


class Stage:
    """The open models. Together they interleave finest; one at a time they never need more memory than the largest,
    and a visit, which begins with opening and warming up, is the median of several samples."""

    def __init__(self, open_lane: Callable[[int], Lane], together: bool) -> None:
        self._open_lane, self._together = open_lane, together
        self._lanes: dict[int, Lane] = {}

    def sample(self, subject: int) -> Sample:
        lane = self._lane(subject)
        count = 1 if self._together else _SAMPLES_PER_VISIT
        return Sample(median(lane.sample() for _ in range(count)), count * lane.repeats)

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.close()
        self._lanes.clear()
        give_back_free_memory()

    def _lane(self, subject: int) -> Lane:
        if subject not in self._lanes:
            if not self._together:
                self.close()
            self._lanes[subject] = self._open_lane(subject)
        return self._lanes[subject]


def warm_up(run: Callable[[], None], clock: Clock, limit: float) -> float:
    """Runs until one window is not faster than the one before it, or the limit has passed; seconds of one run."""
    start = clock()
    before = math.inf
    while True:
        times: list[float] = []
        began = clock()
        while len(times) < _WINDOW_RUNS or clock() - began < _WINDOW_SECONDS:
            at = clock()
            run()
            times.append(clock() - at)
            if clock() - start > limit:
                return median(times)
        now = median(times)
        if now > _NO_LONGER_IMPROVING * before:
            return now
        before = now
