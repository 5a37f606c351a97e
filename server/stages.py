"""How far a job has come, by the stage it is in: a share of the way, not of the time; and what it has gained."""

from __future__ import annotations

from dataclasses import dataclass

from superopt.engine.job import Stage
from superopt.search.ending import Basis
from superopt.search.stages import StageName

REACHED: dict[StageName, float] = {
    "loading": 0.02,
    "rewriting": 0.05,
    "mining": 0.07,
    "calibrating": 0.10,
    "mutating": 0.15,
    "searching": 0.30,
    "timing regions": 0.40,
    "checking": 0.60,
    "looking for the rewrite that changed the outputs": 0.65,
    "timing": 0.70,
    "options": 0.90,
    "drawing": 0.97,
}
_BEFORE_THE_SEARCH = "looking for input sizes"


@dataclass(frozen=True)
class Reached:
    """Where a job stands, as its row says it."""

    stage: str = ""
    detail: str = ""
    progress: float = 0.0
    speedup: float | None = None
    """The best so far."""
    basis: Basis | None = None

    def after(self, told: Stage) -> Reached:
        """Progress is never less than it was: stages come back, as when a second search tries standard operators."""
        known = self if told.speedup is None else told
        return Reached(told.stage[:80], told.detail[:500], _progress(told, self.progress), known.speedup, known.basis)


def _progress(told: Stage, so_far: float) -> float:
    if told.stage == "timing" and told.detail.startswith(_BEFORE_THE_SEARCH):
        return so_far
    return max([so_far, *(share for name, share in REACHED.items() if name == told.stage)])
