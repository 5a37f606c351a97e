"""Fills a cost file with times of the device that is here, for models that are to be optimized for it elsewhere.

First the samples that prices are fitted to. Then, model by model, a whole run of the original and of what passes leave
of it. Then the regions of all models, those first that explain most of a run. Then what the rewriter would look at in
each model, and session options, in the time that is left. Each race is kept as it ends: whatever stops it, what was
measured stays.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from superopt.cost.cache import CostCache
from superopt.cost.calibration import calibrate_in_parts, fitted
from superopt.cost.coefficients import Coefficients
from superopt.cost.costs import Costs
from superopt.cost.manner import in_a_region
from superopt.cost.predict import Predictor
from superopt.cost.timer import RegionTimer
from superopt.errors import BadOption, CannotRun
from superopt.ir.onnx import load, stage
from superopt.normalize import normalize
from superopt.options import Options
from superopt.report import CalibratedModel, CalibrationReport, Rewrite
from superopt.rewrite.emit import Vocabulary
from superopt.search.ending import Ending
from superopt.search.hunting import CALIBRATION, Ground, region_timer
from superopt.search.learning import Learner
from superopt.search.rulebook import open_rulebook
from superopt.search.scales import Scales
from superopt.search.signatures import Signed, signed
from superopt.search.stages import Tell
from superopt.search.surveying import Fates, Survey
from superopt.search.trial import ORIGINAL, Trial
from superopt.search.variants import TIDIED
from superopt.search.workshop import Workshop

WHOLE, LEAST_WHOLE, MOST_WHOLE = 0.1, 0.5, 10.0
"""Share of the time for whole models, and seconds for one, at least and at most."""
SEARCH = 0.8
"""Share of what is left then, for what the rewriter would look at; the rest, and what that leaves, is for session
options."""
THINKING = 0.5
"""Share of a model's time that a search may think for, at most."""


def calibrate_models(
    paths: Sequence[Path], options: Options, seconds: float, tell: Tell, ending: Ending | None = None
) -> CalibrationReport:
    """Measures for so many seconds, and ends the race that is on; `options.costs` names the file."""
    assert options.costs is not None
    costs = Costs(options.costs)
    if not costs.grows:
        raise BadOption(
            f"{costs.file}: an exported or read-only file cannot be added to; superopt costs merge {costs.file} -o "
            "costs.sqlite makes one that can"
        )
    with tempfile.TemporaryDirectory(prefix="superopt-") as folder, costs.opened() as cache:
        return _Calibration(options, seconds, tell, ending or Ending(), Path(folder), cache).run(paths)


@dataclass
class _Subject:
    """A model on the way."""

    path: Path
    trial: Trial
    workshop: Workshop
    passes: tuple[Rewrite, ...]
    signed: Signed = field(default_factory=lambda: Signed((), 0.0))
    options: str = ""
    searched: bool = False
    runs: bool = True
    notes: list[str] = field(default_factory=list[str])


class _Calibration:
    def __init__(
        self, options: Options, seconds: float, tell: Tell, ending: Ending, folder: Path, cache: CostCache
    ) -> None:
        self.options, self.seconds, self.tell, self.folder, self.cache = options, seconds, tell, folder, cache
        self.asked, self.started = ending, time.monotonic()
        self.ending = Ending(lambda: ending.is_asked() or self._left() <= 0.0)
        self.timers: dict[str, RegionTimer] = {}
        self.prices: dict[str, Coefficients] = {}
        self.samples, self.survey = Fates(), Survey(tell, self.ending.is_asked)

    def run(self, paths: Sequence[Path]) -> CalibrationReport:
        subjects = self._subjects(paths)
        self.asked.is_worthwhile()
        for subject in subjects:
            self._begin(subject)
        running = [subject for subject in subjects if subject.runs]
        for number, subject in enumerate(running):
            self._time_whole(subject, len(running), number)
        for subject in running:
            self._sign(subject)
        self.survey.run()
        before, until = self.cache.count_regions(), (1.0 - SEARCH) * self._left()
        for number, subject in enumerate(running):
            self._search(subject, (self._left() - until) / (len(running) - number))
        found = self.cache.count_regions() - before
        for number, subject in enumerate(running):
            self._deploy(subject, self._left() / (len(running) - number))
        return CalibrationReport(
            costs=str(self.cache.file), environment=subjects[0].trial.environment(),
            samples=self.samples.tally(), signatures=self.survey.fates.tally(),
            candidates=found, models=[self._told(subject) for subject in subjects],
            interrupted=self.asked.is_asked(), time_limit=self.seconds, seconds=time.monotonic() - self.started,
        )  # fmt: skip

    def _left(self) -> float:
        return self.seconds - (time.monotonic() - self.started)

    def _subjects(self, paths: Sequence[Path]) -> list[_Subject]:
        """What only CUDA runs is left out: where there is no GPU it cannot be checked, and is not looked at."""
        book = open_rulebook(self.options.rules)
        growth = None if self.options.growth < 0 else self.options.growth
        found: list[_Subject] = []
        for path in paths:
            self.tell("loading", path.name)
            model = load(path)
            trial = Trial(model, self.options, self.tell, self.ending)
            for_cuda = trial.deployment.target == "cuda"
            tidied = normalize(model, growth_cap=growth, for_cuda=for_cuda)
            vocabulary = Vocabulary(contrib=self.options.allow == "contrib", for_cuda=for_cuda)
            found.append(_Subject(path, trial, Workshop(model, tidied.graph, book, vocabulary), tidied.rewrites))
        return found

    def _begin(self, subject: _Subject) -> None:
        """How the model is best timed, and the samples for that."""
        trial = subject.trial
        try:
            trial.symbol_sizes()
            deployment = trial.timed
        except CannotRun as error:
            subject.runs = False
            subject.notes.append(f"cannot be run: {error}")
            return
        if deployment.text in self.timers:
            return
        timer = self.timers[deployment.text] = region_timer(trial, self.cache, self.options.seed)
        self.samples.expect_samples(timer)
        for missing in calibrate_in_parts(timer, CALIBRATION, self.ending.is_asked):
            self.tell("calibrating", f"{missing} sample operators to go, {deployment.text}")
        self.samples.settle_samples(timer)
        self.prices[deployment.text] = fitted(timer)

    def _timer(self, subject: _Subject) -> RegionTimer:
        return self.timers[subject.trial.timed.text]

    def _prices(self, subject: _Subject) -> Coefficients:
        return self.prices[subject.trial.timed.text]

    def _time_whole(self, subject: _Subject, count: int, number: int) -> None:
        if self.ending.is_asked():
            return
        model, path = subject.workshop.model, subject.path
        models = {ORIGINAL: model}
        seconds = min(max(WHOLE * self.seconds / count, LEAST_WHOLE), MOST_WHOLE)
        self.tell("timing", f"{path.name}, model {number + 1} of {count}")
        try:
            if subject.passes:
                folder = self.folder / f"{number}"
                written = stage(model, subject.workshop.tidied, folder, path.name, f"{path.name}.data")
                models[TIDIED] = load(written.path)
            subject.trial.compare_all(models, seconds)
        except CannotRun as error:
            subject.notes.append(f"could not be timed as a whole: {error}")

    def _sign(self, subject: _Subject) -> None:
        sizes, timer = subject.trial.symbol_sizes(), self._timer(subject)
        predictor = Predictor(sizes, self._prices(subject), in_a_region(timer.deployment))
        scales = Scales(subject.workshop.model, sizes, Learner(predictor), timer)
        subject.signed = signed(subject.workshop, scales)
        self.survey.add(subject.signed, timer)

    def _deploy(self, subject: _Subject, seconds: float) -> None:
        if self.ending.is_asked() or self.options.options == "fixed":
            return
        try:
            found = subject.trial.deploy(subject.path, seconds)
        except CannotRun as error:
            subject.notes.append(f"session options could not be tried: {error}")
            return
        if not self.ending.is_asked() and found.is_settled:
            subject.options = found.best.text

    def _search(self, subject: _Subject, seconds: float) -> None:
        """What a search would time, in the model's share of the time; mutants are left out, which are found by the
        clock and proved."""
        if self.ending.is_asked() or seconds <= 0.0:
            return
        until = time.monotonic() + seconds
        ending = Ending(lambda: self.ending.is_asked() or time.monotonic() > until)
        options = replace(self.options, budget=THINKING * seconds, partial=False)
        measuring = 1.0 / THINKING
        with Ground(subject.trial, options, self.tell, ending, self._prices(subject), measuring) as ground:
            hunting = ground.hunt(subject.workshop)
        subject.searched = hunting.searched and not ending.is_asked()
        subject.notes += hunting.notes

    def _told(self, subject: _Subject) -> CalibratedModel:
        known = 0.0
        for signature in subject.signed.signatures:
            told = self._timer(subject).recall(signature.key)
            known += signature.value if told is not None and told.seconds is not None else 0.0
        return CalibratedModel(
            path=str(subject.path), nodes=sum(1 for _ in subject.workshop.model.graph.all_nodes()),
            regions=sum(s.count for s in subject.signed.signatures), signatures=len(subject.signed.signatures),
            share=known / subject.signed.total if subject.signed.total else 0.0,
            deployment=subject.trial.timed.text if subject.runs else "", options=subject.options,
            searched=subject.searched, notes=subject.notes,
        )  # fmt: skip
