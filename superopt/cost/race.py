"""Many small models timed in one interleaved run, each against the first.

The first stays open throughout; the others come in batches, so that memory holds only a few. In each round every open
model is sampled once, in an order drawn anew. A round gives each model's time over the first's, in which the drift
of clock and load cancels; the median of these ratios, times the first's own median, is a model's time. A model is
done when the interval of its ratio is tight: within 1 % near the first, up to 3 % further away, where no precise number
is needed.

Every run has a price of its own, however little the model computes. An empty model, sampled along, tells it, and it is
subtracted: times of small regions can then be added up.

A shared machine may run three times slower for a minute. Ratios do not see that, but times from two races could not be
compared. So a yardstick may be sampled along, whose time in quiet is known: times are then what they would have been
beside a yardstick of that speed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from superopt.cost.sitting import Bench, Lane
from superopt.cost.statistics import median_estimate, paired_log_ratio
from superopt.errors import CannotRun
from superopt.runtime.heap import give_back_free_memory

FIRST, EMPTY, YARDSTICK = 0, -1, -2
NO_TIME_LEFT = "no time was left to measure it"
MOST_OPEN = 12
MOST_OPEN_BYTES = 1 << 29

_LEAST_ROUNDS = 6
_LEAST_LATE_ROUNDS = 3  # when rounds take so long that time is up
_MOST_ROUNDS = 60
_TIGHT = 0.01
_TIGHT_FAR_AWAY = 0.03
_GROWTH = 0.1  # from the one to the other, with the distance from the first as a logarithm
_LEAST_SHARE = 0.05  # of a run that is never taken for overhead


@dataclass(frozen=True)
class Race:
    """Subjects are numbered as `sizes`, which says how many bytes each keeps open; the bench also opens `EMPTY` and
    `YARDSTICK`.

    `tell` hears of each subject that has no time, and why. `yardstick` is the time of that one in quiet, None where
    the clock of the day is good enough. From when on it is `hurried`, no time is left.
    """

    sizes: Sequence[int]
    bench: Bench
    tell: Callable[[int, str], None]
    rng: random.Random
    yardstick: float | None = None
    hurried: Callable[[], bool] = lambda: False
    _logs: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    """Logarithms of each subject's time over the first's, round by round."""

    def run(self, seconds: float, finish: bool = False) -> list[float | None]:
        """Seconds of a run of each subject; None for one that cannot run, or for which no time was left. To `finish`
        is to give every subject a few rounds, however late it is."""
        deadline = self.bench.clock() + seconds
        steady = self._open([FIRST])
        if FIRST not in steady:
            return [None] * len(self.sizes)
        try:
            steady |= self._open([EMPTY] if self.yardstick is None else [EMPTY, YARDSTICK])
            left = len(self.sizes) - 1
            if not left:
                self._rounds(steady, {}, deadline)
            for batch in batches(self.sizes):
                now = self.bench.clock()
                if (now >= deadline and not finish) or self.hurried():
                    self._refuse(batch)
                else:
                    self._batch(steady, batch, now + (deadline - now) * len(batch) / left)
                left -= len(batch)
            return self._times(steady)
        finally:
            _close(steady)

    def _times(self, steady: Mapping[int, Lane]) -> list[float | None]:
        if not steady[FIRST].samples:  # opening it took all the time there was
            return [None] * len(self.sizes)
        first = self._quiet(steady, FIRST)
        overhead = self._quiet(steady, EMPTY) if EMPTY in steady else 0.0
        raw = {FIRST: first} | {s: first * math.exp(median(logs)) for s, logs in self._logs.items()}
        return [max(raw[s] - overhead, _LEAST_SHARE * raw[s]) if s in raw else None for s in range(len(self.sizes))]

    def _quiet(self, steady: Mapping[int, Lane], subject: int) -> float:
        """A steady lane's time, beside a yardstick of known speed where there is one."""
        samples = steady[subject].samples
        if self.yardstick is None or YARDSTICK not in steady:
            return median(samples)
        return self.yardstick * math.exp(-paired_log_ratio(steady[YARDSTICK].samples, samples))

    def _batch(self, steady: Mapping[int, Lane], batch: Sequence[int], until: float) -> None:
        lanes = self._open(batch)
        try:
            self._rounds(steady, lanes, until)
        finally:
            _close(lanes)
            give_back_free_memory()

    def _rounds(self, steady: Mapping[int, Lane], lanes: Mapping[int, Lane], until: float) -> None:
        playing = dict(lanes)
        logs: dict[int, list[float]] = {subject: [] for subject in lanes}
        for count in range(_MOST_ROUNDS):
            is_over = self.hurried() or self.bench.clock() >= until
            if (count >= _LEAST_LATE_ROUNDS and is_over) or (lanes and not playing):
                break
            order = [*steady.items(), *playing.items()]
            self.rng.shuffle(order)
            for subject, lane in order:
                if not self._sample(subject, lane):
                    del playing[subject], logs[subject]
            for subject, lane in list(playing.items()):
                logs[subject].append(math.log(lane.samples[-1] / steady[FIRST].samples[-1]))
                if is_tight(logs[subject]):
                    del playing[subject]
        self._logs.update(logs)

    def _sample(self, subject: int, lane: Lane) -> bool:
        """Whether it ran. What is open throughout ran before: should it fail now, so does the race."""
        try:
            lane.sample()
        except CannotRun as error:
            if subject in (FIRST, EMPTY, YARDSTICK):
                raise
            self.tell(subject, str(error))
            return False
        return True

    def _open(self, subjects: Sequence[int]) -> dict[int, Lane]:
        return self.bench.lanes(subjects, self.tell)

    def _refuse(self, batch: Sequence[int]) -> None:
        for subject in batch:
            self.tell(subject, NO_TIME_LEFT)


def batches(sizes: Sequence[int], most: int = MOST_OPEN, most_bytes: int = MOST_OPEN_BYTES) -> list[list[int]]:
    """All but the first, in order, few enough at a time to be open together with it."""
    found: list[list[int]] = []
    held = 0
    for subject in range(1, len(sizes)):
        if not found or len(found[-1]) >= most or held + sizes[subject] > most_bytes:
            found.append([])
            held = 0
        found[-1].append(subject)
        held += sizes[subject]
    return found


def is_tight(logs: Sequence[float]) -> bool:
    if len(logs) < _LEAST_ROUNDS:
        return False
    found = median_estimate(logs)
    return (found.high - found.low) / 2 < min(max(_TIGHT, _GROWTH * abs(found.value)), _TIGHT_FAR_AWAY)


def _close(lanes: Mapping[int, Lane]) -> None:
    for lane in lanes.values():
        lane.close()
