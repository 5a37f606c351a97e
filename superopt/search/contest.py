"""Which of a model's variants runs fastest as a whole.

Whole models are timed briefly here, regions were timed to a percent or two. So where variants are alike, and where
there is no time for them, what the regions gained decides. One whose regions nobody has timed, because it leaves out an
operator or fuses everything, must be faster beyond doubt, or ahead in two looks together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from superopt.errors import CannotRun
from superopt.ir.onnx import Model, load
from superopt.search.hunted import Hunted
from superopt.search.trial import ORIGINAL, Heard, Trial
from superopt.search.variants import Variant

HEAT, FINAL = 0.2, 0.5
"""Shares of the budget: for all variants together, and for those that may be faster than what the regions say is."""
ALIKE = 1.01
"""Times of variants that are no different; among those the one whose regions gained most is chosen."""
NEAR = 0.995
"""Speed of a variant that is a guess, over the chosen one's, from which on it may be the faster one."""
AHEAD = 1.003
"""Speed of such a variant over the chosen one's, in the mean of both looks, that counts: a model of half a second is
not timed often enough to be sure of a percent, and the last race is against the original."""
RIVALS = 2
"""That are timed once more, at most."""


@dataclass(frozen=True)
class Contest:
    trial: Trial
    original: Model
    hunted: Hunted
    budget: float
    heard: Heard | None = None

    def winner(self, variants: Sequence[Variant], files: Mapping[str, Path]) -> Variant:
        """Of several that differ from the original, given with their files."""
        try:
            models = {ORIGINAL: self.original, **{v.name: load(files[v.name]) for v in variants}}
            comparison, _ = self.trial.compare_all(models, HEAT * self.budget, self.heard)
        except CannotRun:
            return variants[0]
        speeds = {v.name: comparison.pair(v.name).speedup or 0.0 for v in variants}
        if self.heard is not None:
            self.heard(max(speeds.values()))
        whole = [v for v in variants if not v.is_guess] or variants
        alike = [v for v in whole if speeds[v.name] * ALIKE >= max(speeds[v.name] for v in whole)]
        chosen = max(alike, key=lambda v: (self.hunted.saving(v.trace), speeds[v.name]))
        return self._final(chosen, [v for v in variants if v.is_guess and v is not chosen], speeds, models)

    def challenged(self, holder: Variant, guesses: Sequence[Variant], files: Mapping[str, Path]) -> Variant:
        """The one that won so far, or a guess that is faster."""
        try:
            models = {v.name: load(files[v.name]) for v in (holder, *guesses)}
            comparison, _ = self.trial.compare_all(models, HEAT * self.budget)
        except CannotRun:
            return holder
        speeds = {holder.name: 1.0, **{v.name: comparison.pair(v.name).speedup or 0.0 for v in guesses}}
        return self._final(holder, guesses, speeds, models)

    def _final(
        self, chosen: Variant, guesses: Sequence[Variant], first: Mapping[str, float], models: Mapping[str, Model]
    ) -> Variant:
        """Of those that came near in the first look, one that is faster beyond doubt; or that is ahead by the
        mean of both."""
        near = [v for v in guesses if first[v.name] >= NEAR * first[chosen.name]]
        rivals = sorted(near, key=lambda v: -first[v.name])[:RIVALS]
        if not rivals:
            return chosen
        field = {v.name: models[v.name] for v in (chosen, *rivals)}
        try:
            comparison, _ = self.trial.compare_all(field, FINAL * self.budget)
        except CannotRun:
            return chosen
        speeds = {v.name: comparison.pair(v.name).speedup or 0.0 for v in rivals}
        sure = [v for v in rivals if comparison.pair(v.name).verdict == "faster"]
        both = {v.name: math.sqrt(first[v.name] / first[chosen.name] * speeds[v.name]) for v in rivals}
        ahead = [v for v in rivals if both[v.name] >= AHEAD]
        return max(sure or ahead, key=lambda v: both[v.name], default=chosen)
