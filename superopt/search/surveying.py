"""Regions of many models put on the clock, those first that explain most of a run; and what became of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from superopt.cost.race import MOST_OPEN
from superopt.cost.regions import region_key, region_subject
from superopt.cost.samples import samples
from superopt.cost.timer import RegionTimer
from superopt.cost.workloads import host, yardstick_workload
from superopt.report import Tally
from superopt.search.signatures import Signature, Signed
from superopt.search.stages import Tell

EACH = 0.15
"""Seconds for a region."""

Fate = Literal["known", "measured", "failed", "left"]


@dataclass
class Fates:
    """What became of everything that was to be timed, by deployment and key."""

    found: dict[tuple[str, str], Fate] = field(default_factory=dict[tuple[str, str], Fate])

    def expect(self, timer: RegionTimer, key: str) -> bool:
        """Whether it is still to be timed."""
        place = (timer.deployment.text, key)
        self.found[place] = "left" if timer.recall(key) is None else "known"
        return self.found[place] == "left"

    def settle(self, timer: RegionTimer, key: str) -> None:
        place, told = (timer.deployment.text, key), timer.recall(key)
        if self.found[place] == "left" and told is not None:
            self.found[place] = "failed" if told.seconds is None else "measured"

    def expect_samples(self, timer: RegionTimer) -> None:
        for graph in samples(timer.deployment.target):
            self.expect(timer, region_key(host(), graph, {}))

    def settle_samples(self, timer: RegionTimer) -> None:
        for graph in samples(timer.deployment.target):
            self.settle(timer, region_key(host(), graph, {}))

    def tally(self) -> Tally:
        counts = Counter(self.found.values())
        return Tally(
            known=counts["known"], measured=counts["measured"], failed=counts["failed"], left=counts["left"]
        )  # fmt: skip


@dataclass
class _Wanted:
    timer: RegionTimer
    signature: Signature
    value: float = 0.0
    """Parts of a run of each model, added up."""


@dataclass
class Survey:
    tell: Tell
    is_over: Callable[[], bool]
    fates: Fates = field(default_factory=Fates)
    _wanted: dict[tuple[str, str], _Wanted] = field(default_factory=dict[tuple[str, str], _Wanted])

    def add(self, model: Signed, timer: RegionTimer) -> None:
        """A model's regions; what one of them is worth is its part of a run, times how often it is there."""
        for signature in model.signatures:
            place = (timer.deployment.text, signature.key)
            if place not in self.fates.found and self.fates.expect(timer, signature.key):
                self._wanted[place] = _Wanted(timer, signature)
            if place in self._wanted and model.total > 0.0:
                self._wanted[place].value += signature.value / model.total

    def run(self) -> None:
        waiting = sorted(self._wanted.values(), key=lambda w: (-w.value, w.signature.key))
        while waiting and not self.is_over():
            timer = waiting[0].timer
            part = [w for w in waiting if w.timer is timer][: MOST_OPEN - 1]
            waiting = [w for w in waiting if w not in part]
            worth = sum(w.value for w in part)
            self.tell("timing regions", f"{len(part)} of {len(part) + len(waiting)} signatures, worth {worth:.2f} runs")
            self._time(timer, [w.signature for w in part])
            for wanted in part:
                self.fates.settle(timer, wanted.signature.key)

    def _time(self, timer: RegionTimer, signatures: Sequence[Signature]) -> None:
        """Against the yardstick; what cannot be captured in a CUDA graph, without."""
        first = region_subject(host(), yardstick_workload(), {})
        seconds = EACH * (1 + len(signatures))
        timer.time([first, *(s.subject() for s in signatures)], seconds, finish=True, hurried=self.is_over)
        if timer.otherwise is None or self.is_over():
            return
        failed = [s for s in signatures if (told := timer.recall(s.key)) is not None and told.seconds is None]
        if failed:
            self._time(timer.otherwise, failed)
