"""Tells faster from slower, so that equal models are practically never told apart.

Sittings come in twos that open the models in opposite order.

    explore   sittings until the 99 % interval of a speed-up excludes 1, or lies inside what is negligible; or until two
              have nothing but far more than 1, or far less
    confirm   those that were told apart sit again, a number of times fixed beforehand; verdict, speed-up and its
              95 % interval, which must exclude 1 once more, come from these sittings alone
    settle    where `further` time is given: those that may still be faster by a little (patience.py) sit as often as
              it allows; they are if a 99 % interval from these sittings alone excludes 1

Models that take seconds to open may use that further time to be explored, up to the fewest sittings that tell anything,
and to be confirmed. Where one was far faster whenever it was looked at, two sittings to confirm it are held even if
they take longer: nobody wants to lose what is twice as fast because it opens slowly. A `patient` contest holds the
fewest sittings that tell anything however long they take: it decides over all that was done before it. Where sittings
last seconds, a smaller difference is enough to be confirmed after two of them, with four.

Whoever looks again and again until something differs finds differences that are not there. They do not survive
a second, independent look. Exploring may look as often as it likes: it accepts nothing. What accepts are looks at fresh
sittings, few and planned, and alpha is spent over them (Bonferroni). Confirming what exploring told apart costs 5 %,
and half as much each time that it is tried again. Settling, which needs no such finding before it, has 1 % for its two
looks, at half of its sittings and at the end; that it ends when it can no longer win accepts nothing either. Each
spends half of that on either side.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias

from superopt.cost.challenger import FIRST, REPORTED, Challenger, Evidence
from superopt.cost.patience import may_still_win
from superopt.cost.result import Comparison, SubjectTiming
from superopt.cost.sitting import Bench, Sitting
from superopt.cost.statistics import median_estimate, spread
from superopt.cost.turn import ALONE, Turn
from superopt.errors import CannotRun
from superopt.report import Interval, Latency
from superopt.runtime.failure import is_of_memory

Phase: TypeAlias = Literal["explore", "confirm", "settle"]

_SURE = 0.99
_EXPLORE_SHARE = 0.4  # of the time left: confirming takes longer than finding
_CONFIRM_GROWTH = 1.5  # sittings to confirm, for each that it took to find
_LEAST_TO_TELL = 4
_MOST_SITTINGS = 40
_ATTEMPTS = 3
_LEAST_TO_SETTLE, _MOST_TO_SETTLE = 12, 160
_OBVIOUS, _OBVIOUS_IF_SLOW = math.log(1.2), math.log(1.08)  # of a speed-up: few sittings settle it
_SLOW_SECONDS = 2.0  # of a sitting
_LEAST_OBVIOUS = 2
_LOOKS = 2  # while settling, at equal distances
_PRECISE = 0.02  # width of a median's interval that asks for no more
_HURRIED, _LEAST_HURRIED = 0.25, 10  # of the time, or sittings if these take longer, once an end is asked for


@dataclass(frozen=True)
class Method:
    """How long and how finely to measure."""

    seconds: float = 20.0  # for the whole comparison; a sitting that has begun is finished
    further: float = 0.0  # seconds on top, for a challenger that may still be faster by a little or was just told apart
    saving: float = 0.0  # seconds of a run that challengers are expected to save, as far as their parts tell
    patient: bool = False  # whether too little time is no reason to end before anything can be told
    sample_seconds: float = 0.004  # shorter runs are repeated until a sample lasts as long
    negligible: float = 0.005  # differences inside this are not looked for any longer
    seed: int = 0


@dataclass(frozen=True)
class Progress:
    phase: Phase
    sittings: int
    seconds: float
    limit: float
    speedup: float | None = None
    """Of the fastest challenger so far, by all its sittings: to be shown, not to be decided by."""


class Contest:
    """The first subject against the others."""

    def __init__(
        self,
        names: Sequence[str],
        bench: Bench,
        method: Method,
        together: bool,
        tell: Callable[[Progress], None] | None = None,
        hurried: Callable[[], bool] = lambda: False,
        turn: Turn = ALONE,
    ) -> None:
        self._names, self._bench, self._method = names, bench, method
        self._together, self._tell, self._hurried, self._turn = together, tell, hurried, turn
        self._random = random.Random(method.seed)
        self._samples: list[list[float]] = [[] for _ in names]
        self._runs = [0] * len(names)
        self._sittings, self._lasted = 0, 0.0
        self._challengers = [Challenger(i) for i in range(1, len(names))]
        self._start = bench.clock()
        self._deadline = self._start + method.seconds
        self._last = self._deadline + method.further
        self._asked: float | None = None

    def run(self) -> Comparison:
        self._hear()
        if not self._challengers:
            self._alone()
        for _ in range(_ATTEMPTS):
            apart = self._explore()
            if not apart:
                break
            self._confirm(apart)
        self._settle()
        for c in self._undecided():
            c.decide("not faster", self._why_undecided(c), c.explored)
        return self._comparison()

    def _undecided(self) -> list[Challenger]:
        return [c for c in self._challengers if c.verdict is None]

    def _alone(self) -> None:
        while self._sittings < _MOST_SITTINGS and self._bench.clock() < self._deadline:
            self._sit_twice("explore", [])
            found = median_estimate(self._samples[FIRST], REPORTED)
            if self._sittings >= _LEAST_TO_TELL and found.high - found.low < _PRECISE * found.value:
                break

    def _explore(self) -> list[Challenger]:
        """Sits with those that are undecided; returns those that were told apart."""
        began = self._bench.clock()
        playing = self._undecided()
        while playing and self._has_time(began, least=min(len(c.explored) for c in playing)):
            for sitting in self._sit_twice("explore", playing):
                for c in playing:
                    if c.verdict is None:
                        c.explored.add(sitting, c.subject)
            playing = [c for c in playing if not self._is_explored(c)]
        return [c for c in self._undecided() if c.told_apart]

    def _has_time(self, began: float, least: int) -> bool:
        """Slow models may explore past their share, up to the fewest sittings that tell anything."""
        until = began + _EXPLORE_SHARE * (self._deadline - began)
        if least < _LEAST_TO_TELL:
            return self._is_patient or self._bench.clock() < self._last
        return self._bench.clock() < until

    @property
    def _is_patient(self) -> bool:
        return self._method.patient and not self._hurried()

    def _is_explored(self, c: Challenger) -> bool:
        if c.verdict is not None:
            return True
        far = _OBVIOUS_IF_SLOW if self._is_slow else _OBVIOUS
        is_obvious = len(c.explored) >= _LEAST_OBVIOUS and _all_beyond(c.explored, far)
        c.told_apart = is_obvious or c.explored.speedup(_SURE).excludes(1.0)
        likely, band = c.explored.speedup(REPORTED), 1.0 + self._method.negligible
        if len(c.explored) >= _LEAST_TO_TELL and 1.0 / band < likely.low and likely.high < band:
            c.decide("not faster", f"any difference is under {self._method.negligible:.1%}", c.explored)
            return True
        return c.told_apart or len(c.explored) >= _MOST_SITTINGS

    @property
    def _is_slow(self) -> bool:
        """Whether the last sitting took long; drift between models that are opened one by one is none of its matter."""
        return self._together and self._lasted > _SLOW_SECONDS

    def _to_confirm(self, explored: Evidence) -> int:
        """Sittings."""
        return max(_LEAST_TO_TELL, math.ceil((1.0 if self._is_slow else _CONFIRM_GROWTH) * len(explored)))

    def _confirm(self, challengers: Sequence[Challenger]) -> None:
        fresh = {c.subject: Evidence() for c in challengers}
        wanted = {c.subject: self._to_confirm(c.explored) for c in challengers}
        playing = list(challengers)
        while playing := self._still_confirmed(playing, fresh):
            for sitting in self._sit_twice("confirm", playing):
                for c in playing:
                    if c.verdict is None:
                        fresh[c.subject].add(sitting, c.subject)
            playing = [c for c in playing if c.verdict is None and len(fresh[c.subject]) < wanted[c.subject]]
        for c in challengers:
            if c.verdict is None:
                self._judge(c, fresh[c.subject])

    def _still_confirmed(self, playing: Sequence[Challenger], fresh: Mapping[int, Evidence]) -> list[Challenger]:
        """All while there is time; then those that are far faster, for the two sittings that tell it."""
        if self._bench.clock() < self._last or self._is_patient:
            return list(playing)
        if not self._method.further or self._hurried():
            return []
        few = [c for c in playing if len(fresh[c.subject]) < _LEAST_OBVIOUS]
        return [c for c in few if _all_beyond(c.explored, _OBVIOUS) and c.explored.speedup(_SURE).value > 1.0]

    def _judge(self, c: Challenger, fresh: Evidence) -> None:
        was_faster = c.explored.speedup(_SURE).value > 1.0
        is_obvious = _all_beyond(c.explored, _OBVIOUS) and _all_beyond(fresh, _OBVIOUS)
        c.told_apart = False
        c.explored.extend(fresh)
        if len(fresh) < (_LEAST_OBVIOUS if is_obvious else _LEAST_TO_TELL):
            return
        found = fresh.speedup(1.0 - (1.0 - REPORTED) * 0.5**c.confirmations)
        c.confirmations += 1
        if found.excludes(1.0) and (found.value > 1.0) == was_faster:
            reason = f"confirmed by {len(fresh)} fresh sittings"
            c.decide("faster" if was_faster else "slower", reason, fresh)

    def _settle(self) -> None:
        """As many sittings as the further time holds; at least twelve, if it holds half of them."""
        pace = self._sittings / max(self._bench.clock() - self._start, 1e-9)
        fitting = math.floor(pace * (self._last - self._bench.clock()))
        wanted = min(max(fitting, _LEAST_TO_SETTLE), _MOST_TO_SETTLE)
        if all(_all_beyond(c.explored, _OBVIOUS) for c in self._undecided()):
            wanted = min(wanted, _LEAST_TO_SETTLE)
        if self._last == self._deadline or wanted > 2 * fitting:
            return
        self._last = math.inf  # the number is fixed; the clock ends nothing now
        looks = [math.ceil(wanted * k / _LOOKS) for k in range(1, _LOOKS + 1)]
        fresh = {c.subject: Evidence() for c in self._undecided()}
        playing = [c for c in self._undecided() if self._may_still_win(c.explored, wanted)]
        while playing and looks and not self._hurried():
            for sitting in self._sit_twice("settle", playing):
                for c in playing:
                    if c.verdict is None:
                        fresh[c.subject].add(sitting, c.subject)
            if len(fresh[playing[0].subject]) >= looks[0]:
                looks.pop(0)
                for c in playing:
                    self._accept(c, fresh[c.subject])
            playing = [c for c in playing if c.verdict is None and self._may_still_win(fresh[c.subject], wanted)]
        for c in playing if looks else ():  # an end was asked for: this is the look that was still planned
            self._accept(c, fresh[c.subject])
        for c in self._undecided():
            c.explored.extend(fresh[c.subject])

    def _accept(self, c: Challenger, fresh: Evidence) -> None:
        if c.verdict is None and fresh.speedup(1.0 - (1.0 - _SURE) / _LOOKS).low > 1.0:
            c.decide("faster", f"confirmed by {len(fresh)} fresh sittings", fresh)

    def _may_still_win(self, evidence: Evidence, wanted: int) -> bool:
        """Whether so many sittings could tell that it is faster."""
        before = median(self._samples[FIRST])
        expected = before / max(before - self._method.saving, 1e-9)
        return may_still_win(evidence.speedup(_SURE), len(evidence), wanted, expected)

    def _sit_twice(self, phase: Phase, challengers: Sequence[Challenger]) -> list[Sitting]:
        """Two sittings in opposite order, in one turn; a challenger that cannot run leaves the contest."""
        order = [FIRST, *(c.subject for c in challengers)]
        self._random.shuffle(order)
        with self._turn.taken():
            return self._sit_in(order, phase)

    def _sit_in(self, order: list[int], phase: Phase) -> list[Sitting]:
        sittings: list[Sitting] = []
        for _ in range(2):
            began = self._bench.clock()
            sitting = self._sitting(order)
            self._lasted = self._bench.clock() - began
            self._record(sitting)
            self._hear()
            sittings.append(sitting)
            order = [subject for subject in reversed(order) if subject not in sitting.failed]
            if self._tell is not None:
                spent = self._bench.clock() - self._start
                is_late = phase == "settle" or spent > self._method.seconds
                limit = self._method.seconds + (self._method.further if is_late else 0.0)
                self._tell(Progress(phase, self._sittings, spent, limit, self._fastest()))
            if self._bench.clock() >= self._last and not self._is_patient:
                break
        return sittings

    def _sitting(self, order: Sequence[int]) -> Sitting:
        """One by one from the first time on that memory does not hold all of them."""
        sitting = self._bench.sit(order, self._together, self._last)
        if self._together and len(order) > 1 and any(map(is_of_memory, sitting.failed.values())):
            self._together = False
            return self._bench.sit(order, False, self._last)
        return sitting

    def _fastest(self) -> float | None:
        ratios = [math.exp(median(c.seen.log_ratios)) for c in self._challengers if c.seen]
        return max(ratios, default=None)

    def _hear(self) -> None:
        """An end that is asked for leaves a part of the time, and none for small gains."""
        if not self._hurried():
            return
        now, end = self._bench.clock(), self._start + self._method.seconds
        self._asked = now if self._asked is None else self._asked
        sittings = _LEAST_HURRIED * (now - self._start) / max(self._sittings, 1)
        self._deadline = self._last = min(end, self._asked + max(_HURRIED * self._method.seconds, sittings))

    def _record(self, sitting: Sitting) -> None:
        self._sittings += 1
        for subject, samples in sitting.samples.items():
            self._samples[subject] += samples
            self._runs[subject] += sitting.runs(subject)
            if subject != FIRST and FIRST in sitting.samples:
                self._challengers[subject - 1].seen.add(sitting, subject)
        for subject, why in sitting.failed.items():
            if subject == FIRST:
                raise CannotRun(why)
            self._challengers[subject - 1].decide("not faster", why, Evidence())

    def _why_undecided(self, c: Challenger) -> str:
        if len(c.explored) < 2 * _LEAST_TO_TELL:
            return f"too little time: {len(c.explored)} sittings in {round(self._bench.clock() - self._start, 1):g} s"
        return f"no confirmed difference in {len(c.explored)} sittings"

    def _comparison(self) -> Comparison:
        return Comparison(
            subjects=tuple(
                SubjectTiming(name=name, latency=_latency(samples, runs))
                for name, samples, runs in zip(self._names, self._samples, self._runs, strict=True)
            ),
            pairs=tuple(c.timing(self._names[c.subject]) for c in self._challengers),
            seconds=self._bench.clock() - self._start,
            one_at_a_time=not self._together,
        )


def _all_beyond(evidence: Evidence, far: float) -> bool:
    """And on the same side of 1."""
    ratios = evidence.log_ratios
    return bool(ratios) and (min(ratios) > far or max(ratios) < -far)


def _latency(samples: list[float], runs: int) -> Latency | None:
    if not samples:
        return None
    found = median_estimate(samples, REPORTED)
    interval = Interval(low=found.low, high=found.high)
    return Latency(median=found.value, interval=interval, spread=spread(samples), runs=runs)
