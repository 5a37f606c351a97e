"""Times that a cost file tells of a machine which is not here: nothing is timed, and what is missing stays unknown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from superopt.cost.cache import CostCache
from superopt.cost.machine import Machine
from superopt.cost.regions import RegionSubject
from superopt.cost.timer import RegionTimer
from superopt.runtime.deployment import Deployment


class RecordedTimer(RegionTimer):
    def __init__(
        self, deployment: Deployment, cache: CostCache, machine: Machine, otherwise: RegionTimer | None = None
    ) -> None:
        super().__init__(deployment, cache, otherwise=otherwise, machine=machine)

    def _measure(
        self,
        subjects: Sequence[RegionSubject],
        missing: Sequence[int],
        seconds: float,
        finish: bool,
        hurried: Callable[[], bool],
    ) -> None:
        """What is missing cannot be measured."""
