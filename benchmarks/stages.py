"""What is done with one model: optimize it, audit the result, time it against everything else."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import subjects
from benchmarks.commandline import SUPEROPT, run
from benchmarks.foundation import problem
from benchmarks.records import ORIGINAL, OURS, AuditOutcome, Contender, OptimizeOutcome, Ratio
from benchmarks.subjects import Subject
from superopt.report import BenchReport, BenchRow, Environment, Report

SLACK = 600.0  # seconds beyond its budget that a command may take before it is stopped


@dataclass(frozen=True)
class Workplace:
    """Where the result of one model is kept, and how it is made."""

    folder: Path
    target: str
    budget: float
    timing: float
    extra: tuple[str, ...] = ()  # further words for `superopt optimize`
    timeout: float = 3600.0

    @property
    def model(self) -> Path:
        return self.folder / "optimized.onnx"

    @property
    def report(self) -> Path:
        return self.folder / "report.json"


def optimize_command(subject: Subject, place: Workplace) -> list[str]:
    words = [*SUPEROPT, "optimize", str(subject.path), "-o", str(place.model), "--report", str(place.report), "--quiet"]
    words += ["--target", place.target, "--budget", str(place.budget)]
    return [*words, *subjects.arguments(subject, place.folder), *place.extra]


def optimize(subject: Subject, place: Workplace) -> OptimizeOutcome:
    """One `superopt optimize`. The model stays in its place only if it is a new one."""
    place.folder.mkdir(parents=True, exist_ok=True)
    for path in (place.model, place.report):
        path.unlink(missing_ok=True)
    done = run(optimize_command(subject, place), place.timeout)
    if not place.report.exists():
        return OptimizeOutcome(problem=done.problem)
    report = Report.model_validate_json(place.report.read_text())
    if report.returned == "original":
        place.model.unlink(missing_ok=True)
    return outcome_of(report, done.problem if done.returncode else problem(report))


def outcome_of(report: Report, trouble: str) -> OptimizeOutcome:
    timing, search = report.timing, report.search
    ratio = None
    if timing.speedup is not None:
        bounds = timing.speedup_interval
        ratio = Ratio(value=timing.speedup, low=bounds.low if bounds else None, high=bounds.high if bounds else None)
    return OptimizeOutcome(
        problem=trouble,
        returned=report.returned,
        verdict=report.verdict,
        check=f"{report.check.status} ({report.check.runs} runs)",
        nodes=report.after.nodes,
        file_bytes=report.after.file_bytes,
        candidate_nodes=report.candidate_nodes,
        rewrites=dict(Counter(rewrite.name for rewrite in report.rewrites).most_common()),
        own_speedup=ratio,
        seconds=report.seconds,
        search_seconds=search.seconds if search else None,
        measuring_seconds=search.measuring_seconds if search else None,
        candidates=search.candidates if search else None,
        rank_correlation=search.rank_correlation if search else None,
        peak_memory_bytes=report.peak_memory_bytes,
    )


def audit(subject: Subject, place: Workplace, known: bool) -> AuditOutcome:
    """`superopt audit` on a result that is not the original."""
    if not place.model.exists():
        return AuditOutcome(status="nothing to audit")
    if not known:
        return AuditOutcome(status="no audit command")
    done = run((*SUPEROPT, "audit", subject.path, place.model, place.report), place.timeout)
    if done.returncode:
        return AuditOutcome(status="failed", detail=done.problem)
    return AuditOutcome(status="passed")


@dataclass(frozen=True)
class Timing:
    contenders: tuple[Contender, ...]
    environment: Environment | None
    problem: str = ""


def time_all(subject: Subject, place: Workplace, others: Sequence[tuple[str, Path]]) -> Timing:
    """superopt's result, the original and all others in one interleaved `superopt bench`.

    superopt's result is the yardstick: what is reported about another model is its ratio to that one, measured
    against it directly. Where the original came back, it is its own yardstick.
    """
    entrants = [(ORIGINAL, subject.path), *others]
    if place.model.exists():
        entrants.insert(0, (OURS, place.model))
    with tempfile.TemporaryDirectory() as name:
        report = Path(name) / "bench.json"
        command = [*SUPEROPT, "bench", *(path for _, path in entrants), "--report", report, "--quiet"]
        command += ["--target", place.target, "--budget", str(place.timing)]
        command += subjects.arguments(subject, Path(name))
        done = run(command, place.timing + SLACK)
        if not report.exists():
            return Timing((), None, done.problem)
        found = BenchReport.model_validate_json(report.read_text())
    names = {str(path): name for name, path in entrants}
    return Timing(tuple(contender(names[row.model], row) for row in found.rows), found.environment)


def contender(name: str, row: BenchRow) -> Contender:
    median = row.latency.median if row.latency else None
    if row.verdict == "the yardstick":
        return Contender(name=name, median=median, ratio=Ratio(value=1.0, low=1.0, high=1.0))
    if row.speedup is None:
        return Contender(name=name, median=median, ratio=None, detail=row.verdict)
    bounds = row.speedup_interval
    speedup = Ratio(value=row.speedup, low=bounds.low if bounds else None, high=bounds.high if bounds else None)
    return Contender(name=name, median=median, ratio=speedup.inverse(), detail=row.verdict)
