"""How long each stage of a job took."""

from __future__ import annotations

import time
from collections.abc import Callable

WAITING = "waiting for the device"


class Stages:
    """Seconds by stage, in the order in which they were first entered. What was waited for the device counts apart."""

    def __init__(self, first: str, waited: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        self._stage, self._waited, self._clock = first, waited, clock
        self._since, self._waited_before = clock(), waited()
        self._seconds: dict[str, float] = {}

    def enter(self, stage: str) -> None:
        now, waited = self._clock(), self._waited()
        idle = waited - self._waited_before
        self._add(self._stage, now - self._since - idle)
        if idle:
            self._add(WAITING, idle)
        self._stage, self._since, self._waited_before = stage, now, waited

    def _add(self, stage: str, seconds: float) -> None:
        self._seconds[stage] = self._seconds.get(stage, 0.0) + max(0.0, seconds)

    def seconds(self) -> dict[str, float]:
        self.enter(self._stage)
        return {stage: round(taken, 3) for stage, taken in self._seconds.items()}
