"""What became of a model, in one sentence."""

from __future__ import annotations

from superopt.report import CheckReport, PredictionReport, TimingReport
from superopt.search.foretold import nothing_foretold, verdict_of
from superopt.search.rivals import WITH_OPTIONS
from superopt.search.variants import Variant


def verdict(
    candidate: Variant | None, timing: TimingReport, accepted: bool, prediction: PredictionReport | None = None
) -> str:
    if candidate is not None and candidate.is_repaired and not candidate.is_changed:
        return "0 %: all that was rewritten changed the outputs and was left out; the original's own bytes are returned"
    if candidate is None or candidate.check is None or not candidate.is_changed:
        if prediction is not None:
            return nothing_foretold(prediction)
        return "0 %: nothing to improve; the original's own bytes are returned"
    if candidate.check.status == "different":
        return f"the rewritten model differs ({candidate.check.reason}); the original's own bytes are returned"
    if candidate.check.status == "unchecked":
        return f"could not be checked ({candidate.check.reason}); the original's own bytes are returned"
    if prediction is not None:
        return verdict_of(prediction, accepted)
    if accepted and timing.status == "faster" and timing.speedup is not None and timing.speedup_interval is not None:
        low, high = timing.speedup_interval.low, timing.speedup_interval.high
        return f"{timing.speedup:.2f}× faster ({low:.2f} to {high:.2f}), outputs checked equal"
    if accepted:
        return "not slower, outputs checked equal; the rewritten model is returned as asked"
    if timing.status == "untimed":
        return f"could not be timed ({timing.reason}); the original's own bytes are returned"
    if timing.reason.startswith("too little time"):
        why = f"{timing.reason}: try a larger --budget"
        return f"0 %: rewritten, but not known to be faster ({why}); the original's own bytes are returned"
    if timing.reason.startswith(WITH_OPTIONS):
        return f"0 %: {timing.reason}; the original's own bytes are returned"
    return "0 %: rewritten, but not measurably faster; the original's own bytes are returned"


def nothing_to_check() -> CheckReport:
    reason = "nothing was changed: the original's own bytes are returned"
    return CheckReport(status="unchecked", reason=reason, runs=0, inputs=[], outputs=[])
