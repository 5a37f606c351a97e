"""Which variant of a model is checked and raced against the original: the one that runs fastest as a whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from superopt.errors import CannotRun
from superopt.ir.files import Written
from superopt.ir.graph import Graph
from superopt.ir.onnx import Model
from superopt.report import Rewrite
from superopt.search.contest import FINAL, Contest
from superopt.search.ending import Ending
from superopt.search.growth import allowed_growth
from superopt.search.hunted import Hunted
from superopt.search.recorded_trial import RecordedTrial
from superopt.search.trial import Heard, Trial
from superopt.search.turning import turned
from superopt.search.variants import Variant, guessed, leaner, variants
from superopt.search.withdrawing import withdrawn
from superopt.search.workshop import Workshop

LEAVING_OUT = 2
"""Operators that are left out of the fastest variant, at most, one after the other."""

Chosen: TypeAlias = "tuple[Variant, dict[str, Written]]"
"""The variant, and the files of those that were staged, by name."""


@dataclass(frozen=True)
class Chooser:
    trial: Trial
    model: Model
    budget: float
    ending: Ending
    stage: Callable[[Graph], Written]

    def of_all(
        self, workshop: Workshop, passes: tuple[Rewrite, ...], hunted: Hunted, heard: Heard | None = None
    ) -> Chosen:
        """Of everything that a search led to, of that without operators that rewrites brought in, and of what won then
        with its weights turned."""
        found = variants(workshop, passes, hunted)
        if self._is_untimed:
            return self.best(found, hunted)
        found += guessed(workshop, passes, hunted, found)
        chosen, files = self.best(found, hunted, heard)
        contest = Contest(self.trial, self.model, hunted, self.budget)
        for _ in range(LEAVING_OUT):
            fewer = [] if self._is_untimed else list(leaner(workshop, chosen, found))
            if not fewer:
                break
            before, chosen = chosen, self._challenged(contest, chosen, fewer, files)
            if chosen is before:
                break
        rival = None if self._is_untimed else self._turned(workshop, chosen, hunted)
        if rival is not None:
            chosen = self._challenged(contest, chosen, [rival], files)
        return self._withdrawn(workshop, chosen, files, hunted)

    def _turned(self, workshop: Workshop, chosen: Variant, hunted: Hunted) -> Variant | None:
        growth = allowed_growth(workshop.model, self.trial.options)
        return turned(workshop, chosen, self.trial.timed, growth, hunted.numbered)

    def _challenged(
        self, contest: Contest, holder: Variant, guesses: Sequence[Variant], files: dict[str, Written]
    ) -> Variant:
        """The faster one; files of those that lost are gone."""
        files |= {v.name: self.stage(v.graph) for v in (holder, *guesses) if v.name not in files}
        chosen = contest.challenged(holder, guesses, _paths(files))
        for loser in guesses:
            if loser is not chosen:
                shutil.rmtree(files.pop(loser.name).path.parent, ignore_errors=True)
        return chosen

    def _withdrawn(self, workshop: Workshop, chosen: Variant, files: dict[str, Written], hunted: Hunted) -> Chosen:
        """The chosen one, or the one for an option that it loses by, where that is faster."""
        fixed = self._is_untimed or self.trial.options.options == "fixed"
        rival = None if fixed else withdrawn(workshop, chosen, self.trial.timed, hunted.numbered)
        if rival is None or rival.deployment is None:
            return chosen, files
        written = self.stage(rival.graph)
        held = files[chosen.name].path if chosen.name in files else self.model.path
        assert held is not None
        holder, challenger = (held, self.trial.timed), (written.path, rival.deployment)
        try:
            is_faster = self.trial.race_deployed(holder, challenger, FINAL * self.budget).verdict == "faster"
        except CannotRun:
            is_faster = False
        if is_faster:
            return rival, {**files, rival.name: written}
        shutil.rmtree(written.path.parent, ignore_errors=True)
        return chosen, files

    def best(self, candidates: list[Variant], hunted: Hunted, heard: Heard | None = None) -> Chosen:
        """Of these; where nothing can be timed, the one whose regions gained most."""
        changed = [c for c in candidates if c.is_changed]
        if not changed:
            return candidates[0], {}
        files = {c.name: self.stage(c.graph) for c in changed}
        if len(changed) == 1 or self._is_untimed:
            return max(changed, key=lambda c: hunted.saving(c.trace)), files
        contest = Contest(self.trial, self.model, hunted, self.budget, heard)
        return contest.winner(changed, _paths(files)), files

    @property
    def _is_untimed(self) -> bool:
        """Whether variants cannot be told apart by the clock, or not any more."""
        return self.ending.is_asked() or isinstance(self.trial, RecordedTrial)


def _paths(files: Mapping[str, Written]) -> dict[str, Path]:
    return {name: written.path for name, written in files.items()}
