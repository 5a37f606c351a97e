"""Times of regions on one device: remembered, taken from a cost file where it has them, measured where it has not."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property

from superopt.cost.cache import CostCache, RegionKey, RegionTime
from superopt.cost.machine import Machine, machine_here
from superopt.cost.race import NO_TIME_LEFT
from superopt.cost.regions import REGION_METHOD, RegionSubject, time_regions, time_yardstick
from superopt.cost.sitting import Clock
from superopt.cost.turn import ALONE, Turn
from superopt.runtime.deployment import Deployment
from superopt.runtime.failure import is_of_memory

_YARDSTICK = "yardstick"
_YARDSTICK_SECONDS = 0.3


class RegionTimer:
    """Answers the same question the same way, for as long as it lives and from one cost file for ever.

    What no time was left for is not remembered: it may be asked again.
    """

    def __init__(
        self,
        deployment: Deployment,
        cache: CostCache | None = None,
        seed: int = 0,
        clock: Clock = time.perf_counter,
        turn: Turn = ALONE,
        otherwise: RegionTimer | None = None,
        machine: Machine | None = None,
    ) -> None:
        """One race has the `turn` on the device, but while it opens models on a GPU; the seconds given run from its
        beginning. Where the first of a race does not run in this deployment, `otherwise` times all of them."""
        self.deployment, self.turn, self.otherwise = deployment, turn, otherwise
        self._cache, self._seed, self._clock = cache, seed, clock
        self._machine, self._known = machine, dict[str, RegionTime]()

    def time(
        self,
        subjects: Sequence[RegionSubject],
        seconds: float,
        tell: Callable[[int, str], None] | None = None,
        *,
        finish: bool = False,
        hurried: Callable[[], bool] = lambda: False,
    ) -> list[float | None]:
        """Seconds of each, those that are not known yet timed against the first; None, with the reason told. To
        `finish` is to time every region, however briefly, past the seconds given; from when on it is `hurried` none
        is timed, and what was is not remembered."""
        missing = [i for i, s in enumerate(subjects) if self._find(s.key) is None]
        if missing:
            self._measure(subjects, missing, seconds, finish, hurried)
        found = [self._known.get(s.key, RegionTime(None, NO_TIME_LEFT)) for s in subjects]
        if self.otherwise is not None and found and found[0].seconds is None and found[0].reason != NO_TIME_LEFT:
            return self.otherwise.time(subjects, seconds, tell, finish=finish, hurried=hurried)
        for i, result in enumerate(found):
            if result.seconds is None and tell is not None:
                tell(i, result.reason)
        return [result.seconds for result in found]

    @cached_property
    def yardstick(self) -> float:
        """Its time in quiet; see race.py."""
        known = self._find(_YARDSTICK)
        if known is None or known.seconds is None:
            with self.turn.taken():
                known = RegionTime(time_yardstick(self.deployment, _YARDSTICK_SECONDS, self._clock))
            self._keep(_YARDSTICK, known)
        assert known.seconds is not None
        return known.seconds

    def recall(self, key: str) -> RegionTime | None:
        """What is known of a region by now, if only that it cannot run; nothing is timed."""
        found = self._find(key)
        if found is not None and found.seconds is None and self.otherwise is not None:
            return self.otherwise.recall(key) or found
        return found

    def _measure(
        self,
        subjects: Sequence[RegionSubject],
        missing: Sequence[int],
        seconds: float,
        finish: bool,
        hurried: Callable[[], bool],
    ) -> None:
        """The first runs along, known or not; where it is known, the others are told by their ratio to it."""
        order = [0, *(i for i in missing if i != 0)]
        reasons: dict[int, str] = {}
        with self.turn.taken():
            times = time_regions(
                [subjects[i] for i in order], self.deployment, seconds,
                lambda at, why: reasons.update({order[at]: why}),
                yardstick=self.yardstick, finish=finish, seed=self._seed, clock=self.turn.paused(self._clock),
                hurried=hurried, turn=self.turn,
            )  # fmt: skip
        if hurried():
            return
        measured = dict(zip(order, times, strict=True))
        before, now = self._known.get(subjects[0].key), measured[0]
        scale = before.seconds / now if before is not None and before.seconds and now else 1.0
        for i in missing:
            taken = measured[i]
            if taken is not None:
                self._keep(subjects[i].key, RegionTime(taken * scale))
            elif i in reasons and reasons[i] != NO_TIME_LEFT:
                self._keep(subjects[i].key, RegionTime(None, reasons[i]), lasting=not is_of_memory(reasons[i]))

    def _find(self, name: str) -> RegionTime | None:
        found = self._known.get(name)
        if found is None and self._cache is not None:
            found = self._cache.get_region(self._key(name))
            if found is not None:
                self._known[name] = found
        return found

    def _keep(self, name: str, found: RegionTime, lasting: bool = True) -> None:
        self._known[name] = found
        if self._cache is not None and lasting:
            self._cache.put_region(self._key(name), found)

    def _key(self, name: str) -> RegionKey:
        m = self.machine
        return RegionKey(name, self.deployment.text, m.device, m.driver, m.runtime, REGION_METHOD)

    @cached_property
    def machine(self) -> Machine:
        """Whose times these are: those of this machine, unless another was named."""
        return self._machine or machine_here(self.deployment)
