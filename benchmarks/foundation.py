"""Optimize real models with the command line, one by one, and print what came of it (`make bench-foundation`).

    python benchmarks/foundation.py [--models DIR]… [--only REGEX] [--target cpu|cuda] [--save]

The models are those fetched by fetch.py, and every .onnx file under the folders given. Each is optimized by its own
`superopt optimize`, as a user would run it; every number here is read from the report that run wrote.
Exit code 1 if a run failed, or if it returned a model that was found different, or that was not found faster.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import subjects
from benchmarks.subjects import Subject
from benchmarks.texts import aligned
from superopt.report import Environment, Report

RESULTS = Path(__file__).parent / "results"
COLUMNS = ("model", "nodes", "MB", "latency ms", "speed-up", "check", "returned", "peak MB", "s", "verdict")


@dataclass(frozen=True)
class Run:
    subject: Subject
    report: Report | None
    problem: str  # why there is no report, or what should not have happened


def chosen(folders: Sequence[Path]) -> Iterator[Subject]:
    yield from subjects.fetched()
    for folder in folders:
        yield from subjects.in_folder(folder)


def optimize(subject: Subject, target: str, budget: float, timeout: float) -> Run:
    """One `superopt optimize`, in a folder of its own that is gone afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [str(Path(sysconfig.get_path("scripts")) / "superopt"), "optimize", str(subject.path)]
        command += ["-o", str(folder / "out.onnx"), "--report", str(folder / "report.json"), "--quiet"]
        command += ["--target", target, "--budget", str(budget)]
        command += subjects.arguments(subject, folder)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return Run(subject, None, f"stopped after {timeout:.0f} s")
        if done.returncode != 0 or not (folder / "report.json").exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return Run(subject, None, f"exit code {done.returncode}: {last}")
        report = Report.model_validate_json((folder / "report.json").read_text())
        return Run(subject, report, problem(report))


def problem(report: Report) -> str:
    """What must never happen, seen from outside."""
    if report.returned == "original":
        return ""
    if report.check.status != "equal":
        return f"a changed model was returned whose check says {report.check.status}"
    if report.timing.status != "faster":
        return f"a changed model was returned that is {report.timing.status}"
    return ""


def row(run: Run) -> tuple[str, ...]:
    report = run.report
    if report is None:
        return (run.subject.name, *("-" * (len(COLUMNS) - 2)), f"FAILED: {run.problem}")
    timing = report.timing
    latency, speedup = "-", "-"
    if timing.before and timing.after:
        latency = f"{timing.before.median * 1e3:.3f} -> {timing.after.median * 1e3:.3f}"
    if timing.speedup and timing.speedup_interval:
        speedup = f"{timing.speedup:.2f}x [{timing.speedup_interval.low:.2f}, {timing.speedup_interval.high:.2f}]"
    return (
        run.subject.name,
        f"{report.before.nodes} -> {report.candidate_nodes}",
        f"{report.before.file_bytes / 1e6:.2f} -> {report.after.file_bytes / 1e6:.2f}",
        latency,
        speedup,
        f"{report.check.status} ({report.check.runs} runs)",
        report.returned,
        f"{report.peak_memory_bytes / 1e6:.0f}",
        f"{report.seconds:.1f}",
        f"FAILED: {run.problem}" if run.problem else report.verdict,
    )


def table(runs: Sequence[Run]) -> str:
    return aligned([COLUMNS, *map(row, runs)])


def heading(environment: Environment) -> str:
    e = environment
    return (
        f"{e.target}: {e.device}, driver {e.driver or '-'}, {e.threads} threads, {e.platform}\n"
        f"superopt {e.superopt}, onnxruntime {e.onnxruntime}, onnx {e.onnx}, Python {e.python}\n"
        "latency: medians of one interleaved session of original and candidate; speed-up with its 95 % interval;\n"
        "nodes are the candidate's, also where the original came back"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", action="append", type=Path, default=[], metavar="DIR", help="also every .onnx here")
    parser.add_argument("--only", default="", metavar="REGEX", help="only models whose name matches")
    parser.add_argument("--target", default="auto", choices=("auto", "cpu", "cuda"))
    parser.add_argument("--budget", type=float, default=60.0, metavar="SECONDS", help="for timing one model")
    parser.add_argument("--timeout", type=float, default=900.0, metavar="SECONDS", help="for one model")
    parser.add_argument("--save", action="store_true", help="write the table to results/foundation-TARGET.txt")
    options = parser.parse_args(arguments)
    wanted = [s for s in chosen(options.models) if re.search(options.only, s.name)]
    if not wanted:
        print("no model to optimize: run `make models`, or name a folder with --models", file=sys.stderr)
        return 2
    runs: list[Run] = []
    for subject in wanted:
        runs.append(optimize(subject, options.target, options.budget, options.timeout))
        print("  ".join(row(runs[-1])), file=sys.stderr, flush=True)
    text = table(runs) + "\n"
    environments = [r.report.environment for r in runs if r.report]
    if environments:
        text = f"{heading(environments[0])}\n\n{text}"
    print(text, end="")
    if options.save and environments:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"foundation-{environments[0].target}.txt").write_text(text)
    return int(any(r.problem for r in runs))


if __name__ == "__main__":
    sys.exit(main())
