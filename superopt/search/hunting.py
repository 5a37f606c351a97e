"""The rules searched on one device: its coefficients, its clock, the share of the budget that this may take."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from superopt.cost.cache import CostCache
from superopt.cost.calibration import calibrate, is_begun
from superopt.cost.coefficients import Coefficients
from superopt.cost.manner import in_a_region
from superopt.cost.memory import peak_resident_bytes
from superopt.cost.predict import Predictor
from superopt.cost.timer import RegionTimer
from superopt.cost.trained import learned, start_of
from superopt.errors import CannotRun, SuperoptError
from superopt.ir.onnx.model import OPSETS
from superopt.options import Options
from superopt.report import SearchReport
from superopt.search.choices import EXHAUSTIVE
from superopt.search.ending import Ending
from superopt.search.growth import allowed_growth
from superopt.search.hunted import Budget, Hunted
from superopt.search.recorded_trial import RecordedTrial
from superopt.search.stages import Tell
from superopt.search.trial import Trial
from superopt.search.workshop import Workshop

MEASURE = 0.4
"""Share of the budget for timing regions."""
PARTIAL = 0.3
"""Share of the budget, on top, for mutants: making, timing and proving them."""
CALIBRATION = 6.0
"""Seconds to learn what a device is good at, once: the times are kept for later runs."""
"""What combined weights may add to a model unless the user says otherwise: bytes, or a part of it if that is more."""


@dataclass(frozen=True)
class Hunting:
    found: Hunted
    rank_correlation: float | None = None
    searched: bool = True
    peak: int = 0
    """Bytes, when the search ended."""
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def nothing(cls, note: str) -> Hunting:
        return cls(Hunted(), searched=False, notes=(note,))


class Ground:
    """Where rules are searched: what was measured for one search serves the next."""

    def __init__(
        self,
        trial: Trial,
        options: Options,
        tell: Tell,
        ending: Ending,
        coefficients: Coefficients | None = None,
        measuring: float = MEASURE,
    ) -> None:
        """With the `coefficients` of the device, where they are known; `measuring` is the share of the budget for
        timing regions."""
        self.trial, self.options, self.tell, self.ending = trial, options, tell, ending
        self._given, self._measuring = coefficients, measuring
        self._stack = ExitStack()
        self._cache = None if trial.costs is None else self._stack.enter_context(trial.costs.opened())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def hunt(self, workshop: Workshop, share: float = 1.0) -> Hunting:
        """What the rules give, in a share of the time that searches have."""
        if workshop.model.opset not in OPSETS:
            return Hunting.nothing(f"opset {workshop.model.opset} is not one that superopt knows; only tidied")
        if self.ending.is_asked():
            return Hunting.nothing("the rules were not searched: an end was asked for before")
        try:
            sizes = self.trial.symbol_sizes()
            predictor = Predictor(sizes, self.coefficients, in_a_region(self.timer.deployment))
        except CannotRun as error:  # a model that cannot be run cannot be measured; the check will say so too
            return Hunting.nothing(f"the rules were not searched: {error}")
        options = self.options
        budget = Budget(
            search=share * (options.search_time or options.budget), measure=share * self._measuring * options.budget,
            candidates=options.candidates, alpha=options.alpha, growth=allowed_growth(workshop.model, options),
            partial=PARTIAL * options.budget if self._is_mutating and share == 1.0 else 0.0,
        )  # fmt: skip
        found, correlation = workshop.hunt(self.timer, predictor, sizes, budget, self.tell, self.ending)
        return Hunting(found, correlation, peak=peak_resident_bytes(), notes=tuple(found.notes))

    @property
    def _is_mutating(self) -> bool:
        """Mutants are proved only where the clock found them faster, and need one."""
        return self.options.partial and not isinstance(self.trial, RecordedTrial)

    @cached_property
    def timer(self) -> RegionTimer:
        if isinstance(self.trial, RecordedTrial):
            assert self._cache is not None
            return self.trial.timer(self._cache)
        return region_timer(self.trial, self._cache, self.options.seed)

    @cached_property
    def coefficients(self) -> Coefficients:
        """From the cost file given, or else from the user's own; where nobody has calibrated and the device is one that
        we know, what was learned of it; where nothing works, what is true of most devices."""
        if self._given is not None:
            return self._given
        self.tell("calibrating", "")
        if self._cache is not None:
            return calibrate(self.timer, CALIBRATION)
        usual, machine = EXHAUSTIVE.applied(self.trial.timed), self.trial.machine
        try:
            with CostCache() as own:
                timer, known = RegionTimer(usual, own, turn=self.trial.turn), learned(usual, machine)
                return known if known is not None and not is_begun(timer) else calibrate(timer, CALIBRATION)
        except SuperoptError:
            return start_of(usual, machine.device)


def region_timer(trial: Trial, cache: CostCache | None, seed: int) -> RegionTimer:
    """Of what cannot run under a session option (be captured in a CUDA graph, say), all is timed without."""
    plain, *further = trial.ladder
    timer = RegionTimer(plain, cache, seed, turn=trial.turn)
    for deployment in further:
        timer = RegionTimer(deployment, cache, seed, turn=trial.turn, otherwise=timer)
    return timer


def search_report(hunting: Hunting, workshop: Workshop, options: Options) -> SearchReport | None:
    if not hunting.searched:
        return None
    found = hunting.found
    return SearchReport(
        rules=len(workshop.book.rules), regions=found.regions, distinct_regions=found.distinct,
        candidates=found.candidates, measured=found.measured, alpha=options.alpha, seconds=found.thinking,
        measuring_seconds=found.measuring, rank_correlation=hunting.rank_correlation, exhausted=found.exhausted,
        peak_memory_bytes=hunting.peak, programs=found.mutated.programs, mutants=found.mutated.mutants,
        mutants_timed=found.mutated.timed, mutants_proved=len(found.mutated.rules),
        mutating_seconds=found.mutated.seconds,
    )  # fmt: skip
