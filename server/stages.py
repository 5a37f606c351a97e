"""How far a job has come, by the stage it is in: a share of the way, not of the time."""

from __future__ import annotations

_REACHED = {
    "loading": 0.02,
    "rewriting": 0.05,
    "calibrating": 0.10,
    "searching": 0.15,
    "timing regions": 0.35,
    "mutating": 0.45,
    "checking": 0.60,
    "looking for the rewrite that changed the outputs": 0.65,
    "timing": 0.70,
    "options": 0.90,
}
_BEFORE_THE_SEARCH = "looking for input sizes"


def progress(stage: str, detail: str, so_far: float) -> float:
    """Never less than it was: stages come back, as when a second search tries standard operators alone."""
    if stage == "timing" and detail.startswith(_BEFORE_THE_SEARCH):
        return so_far
    return max(so_far, _REACHED.get(stage, so_far))
