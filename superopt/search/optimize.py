"""One model from load to verdict: rewrite it, check it, time it, and return it only if it is right and faster."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from superopt.cost.memory import peak_resident_bytes
from superopt.errors import BadOption
from superopt.ir.files import Written
from superopt.ir.graph import Graph
from superopt.ir.onnx import Model, facts, load, stage
from superopt.options import Options
from superopt.report import CheckReport, Environment, ModelFacts, Report, TimingReport
from superopt.search.repair import Candidate, first_right_candidate
from superopt.search.trial import Tell, Trial

Found = Callable[[ModelFacts, list[str], Environment], None]

NOT_SLOWER = 0.98
"""Lower bound of the speed-up from which on a model counts as not slower."""


@dataclass(frozen=True)
class Destination:
    """Where the result is staged, under the names it will have."""

    folder: Path
    name: str
    data_name: str
    share_data: bool


@dataclass(frozen=True)
class Outcome:
    written: Written
    report: Report


def optimize_model(path: Path, where: Destination, options: Options, tell: Tell, found: Found) -> Outcome:
    """Stage the faster model, or the original, and report."""
    started = time.monotonic()
    tell("loading", str(path.name))
    model = load(path)
    _refuse_lost_data(model, where)
    before = facts(model)
    trial = Trial(model, options, tell)
    found(before, list(model.external), trial.environment())
    written: list[Written] = []

    def staged(graph: Graph) -> Path:
        written[:] = [stage(model, graph, where.folder / "candidate", where.name, where.data_name)]
        return written[0].path

    growth = None if options.growth < 0 else options.growth
    candidate = first_right_candidate(model, growth, lambda graph: trial.check(staged(graph)), tell)
    timing = _time(trial, candidate, written)
    accepted = candidate is not None and candidate.check.status == "equal" and _accepts(timing, options)
    if accepted:
        result, after = written[0], facts(load(written[0].path), file_bytes=written[0].total_bytes)
    else:
        result = stage(model, None, where.folder / "original", where.name, where.data_name, share=where.share_data)
        after = before
    report = Report(
        verdict=_verdict(candidate, timing, accepted),
        returned="optimized" if accepted else "original",
        before=before,
        after=after,
        rewrites=list(candidate.rewrites) if candidate is not None else [],
        candidate_nodes=_nodes(candidate.graph if candidate is not None else model.graph),
        check=candidate.check if candidate is not None else nothing_to_check(),
        timing=timing,
        environment=trial.environment(),
        options=options.as_json(),
        peak_memory_bytes=peak_resident_bytes(),
        seconds=time.monotonic() - started,
        notes=list(candidate.notes) if candidate is not None else [],
    )
    return Outcome(result, report)


def _refuse_lost_data(model: Model, where: Destination) -> None:
    """The result may neither replace the original's data files nor need one under its own name."""
    out = where.folder.parent / where.name
    for location in model.external:
        assert model.folder is not None
        if Path(location) == Path(where.name) or (out.exists() and out.samefile(model.folder / location)):
            raise BadOption(f"{where.name}: the model keeps its weights in a file of that name; choose another")


def _time(trial: Trial, candidate: Candidate | None, written: list[Written]) -> TimingReport:
    """Only a candidate that was found equal is worth timing; it is the one that was staged last."""
    if candidate is None:
        return trial.time_original()
    if candidate.check.status != "equal":
        return TimingReport.untimed("a model that was not found equal is not timed")
    return trial.race(load(written[-1].path))


def _accepts(timing: TimingReport, options: Options) -> bool:
    if timing.status == "faster":
        return True
    interval = timing.speedup_interval
    return options.accept == "not-slower" and interval is not None and interval.low >= NOT_SLOWER


def _verdict(candidate: Candidate | None, timing: TimingReport, accepted: bool) -> str:
    if candidate is None:
        return "0 %: nothing to improve; the original's own bytes are returned"
    if candidate.check.status == "different":
        return f"the rewritten model differs ({candidate.check.reason}); the original's own bytes are returned"
    if candidate.check.status == "unchecked":
        return f"could not be checked ({candidate.check.reason}); the original's own bytes are returned"
    if accepted and timing.status == "faster" and timing.speedup is not None and timing.speedup_interval is not None:
        low, high = timing.speedup_interval.low, timing.speedup_interval.high
        return f"{timing.speedup:.2f}× faster ({low:.2f} to {high:.2f}), outputs checked equal"
    if accepted:
        return "not slower, outputs checked equal; the rewritten model is returned as asked"
    if timing.status == "untimed":
        return f"could not be timed ({timing.reason}); the original's own bytes are returned"
    return "0 %: rewritten, but not measurably faster; the original's own bytes are returned"


def nothing_to_check() -> CheckReport:
    reason = "nothing was changed: the original's own bytes are returned"
    return CheckReport(status="unchecked", reason=reason, runs=0, inputs=[], outputs=[])


def _nodes(graph: Graph) -> int:
    return sum(1 for _ in graph.all_nodes())
