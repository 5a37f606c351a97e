"""One sitting: models are opened, warmed up, sampled in turns and closed again.

Open together they are sampled in rounds, each in the reverse order of the one before, for about as long as opening
and warming up took. Models too large for that are opened one after the other, so that memory never holds more than
the largest; drift between them is then part of the sitting's number, and of the scatter over sittings.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from statistics import median
from typing import Protocol, TypeAlias

from superopt.cost.statistics import paired_log_ratio
from superopt.errors import CannotRun
from superopt.runtime.heap import give_back_free_memory

Clock: TypeAlias = Callable[[], float]

_WINDOW_SECONDS = 0.02
_WINDOW_RUNS = 2
_NO_LONGER_IMPROVING = 0.98
_MOST_REPEATS = 10_000
_LEAST_ROUNDS = 6
_MOST_ROUNDS = 40
_LEAST_LONG_ROUNDS = 2  # when rounds take so long that even these last
_LONG_SECONDS = 1.0


class Runner(Protocol):
    """A model that was opened."""

    def start(self) -> None:
        """Put its inputs in place and run it for the first time: on a GPU kernels are chosen then, by trying them."""
        ...

    def run(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Sitting:
    """Seconds of single runs by subject; `paired` when the i-th samples of all subjects belong together."""

    samples: dict[int, list[float]]
    repeats: dict[int, int]
    failed: dict[int, str]
    paired: bool

    def log_ratio(self, first: int, other: int) -> float:
        before, after = self.samples[first], self.samples[other]
        return paired_log_ratio(before, after) if self.paired else math.log(median(before) / median(after))

    def runs(self, subject: int) -> int:
        return len(self.samples[subject]) * self.repeats[subject]


@dataclass(frozen=True)
class Bench:
    """Where subjects are opened, started and timed; opened `aside`, which is where others are not disturbed by it."""

    open_runner: Callable[[int], Runner]
    clock: Clock
    sample_seconds: float
    warm_up_seconds: float
    aside: Callable[[], AbstractContextManager[None]] = nullcontext

    def sit(self, order: Sequence[int], together: bool, deadline: float) -> Sitting:
        """All of `order`, opened in that order. A subject that cannot run is among the failed, the others go on."""
        return self._together(order, deadline) if together else self._one_by_one(order, deadline)

    def _together(self, order: Sequence[int], deadline: float) -> Sitting:
        sitting = Sitting({}, {}, {}, paired=True)
        began = self.clock()
        lanes = self.lanes(order, sitting.failed.__setitem__)
        try:
            playing = list(lanes)
            for _ in self._rounds(self.clock() - began, deadline):
                for subject in playing:
                    with _noting_failure(sitting, subject):
                        lanes[subject].sample()
                playing = [subject for subject in reversed(playing) if subject not in sitting.failed]
        finally:
            for lane in lanes.values():
                lane.close()
        for subject in playing:
            sitting.samples[subject], sitting.repeats[subject] = lanes[subject].samples, lanes[subject].repeats
        return sitting

    def _one_by_one(self, order: Sequence[int], deadline: float) -> Sitting:
        sitting = Sitting({}, {}, {}, paired=False)
        for subject in order:
            with _noting_failure(sitting, subject), contextlib.closing(self.lane(subject)) as lane:
                for _ in self._rounds(0.0, deadline):
                    lane.sample()
                sitting.samples[subject], sitting.repeats[subject] = lane.samples, lane.repeats
            give_back_free_memory()
        return sitting

    def _rounds(self, seconds: float, deadline: float) -> Generator[None]:
        """As many as take the seconds, within limits."""
        start = self.clock()
        for count in range(_MOST_ROUNDS):
            now = self.clock()
            if count >= _LEAST_ROUNDS and now >= min(deadline, start + seconds):
                return
            if count >= _LEAST_LONG_ROUNDS and now >= start + max(seconds, _LONG_SECONDS):
                return
            yield

    def lanes(self, subjects: Iterable[int], tell: Callable[[int, str], None]) -> dict[int, Lane]:
        """Those that can run, opened and warm; of the others it is told why they cannot."""
        found: dict[int, Lane] = {}
        with ExitStack() as failing:
            with self.aside():
                for subject in subjects:
                    try:
                        found[subject] = Lane(self.open_runner(subject), self.clock)
                    except CannotRun as error:
                        tell(subject, str(error))
                        continue
                    failing.callback(found[subject].close)
            for subject, lane in list(found.items()):
                try:
                    lane.start()
                    lane.warm_up(self.warm_up_seconds, self.sample_seconds)
                except CannotRun as error:
                    tell(subject, str(error))
                    found.pop(subject).close()
            failing.pop_all()
        return found

    def lane(self, subject: int) -> Lane:
        """One subject opened and warm; `CannotRun` where it cannot be."""
        reasons: list[str] = []
        found = self.lanes([subject], lambda _, reason: reasons.append(reason))
        if not found:
            raise CannotRun(reasons[0])
        return found[subject]


class Lane:
    """One open model. Short runs are repeated inside a sample, after one that only refills the caches."""

    def __init__(self, runner: Runner, clock: Clock) -> None:
        self._runner, self._clock, self.repeats = runner, clock, 1
        self.samples: list[float] = []

    def start(self) -> None:
        self._runner.start()

    def warm_up(self, limit: float, sample_seconds: float) -> None:
        """Run until it does not get faster, or the limit has passed; samples will take about so many seconds."""
        seconds = warm_up(self._runner.run, self._clock, limit)
        self.repeats = min(_MOST_REPEATS, max(1, math.ceil(sample_seconds / max(seconds, 1e-9))))

    def sample(self) -> None:
        run, repeats = self._runner.run, self.repeats
        if repeats > 1:
            run()
        start = self._clock()
        for _ in range(repeats):
            run()
        self.samples.append((self._clock() - start) / repeats)

    def close(self) -> None:
        self._runner.close()


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


@contextlib.contextmanager
def _noting_failure(sitting: Sitting, subject: int) -> Generator[None]:
    try:
        yield
    except CannotRun as error:
        sitting.failed[subject] = str(error)
