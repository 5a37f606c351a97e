"""`superopt calibrate`: call and print."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace

from rich.console import Console

from superopt.cli.live import Live
from superopt.cli.tables import say
from superopt.cost.cache import default_cost_file
from superopt.engine.job import CalibrateJob
from superopt.engine.watch import Limits, Watched, default_memory_limit, run_job
from superopt.errors import BadModel, BadOption
from superopt.explain.figures import duration
from superopt.options import Options
from superopt.report import CalibrationReport, Tally

GRACE = 300.0
"""Seconds that the race which is on may take to end when the time is over, before the job is stopped: what was kept by
then is in the file."""


def run_calibrate(arguments: argparse.Namespace, options: Options, console: Console) -> CalibrationReport:
    seconds: float = arguments.time_limit
    if not math.isfinite(seconds) or seconds <= 0:
        raise BadOption(f"--time-limit: expected seconds above 0, found {seconds}")
    for path in arguments.models:
        if not path.is_file():
            raise BadModel(f"{path}: no such file")
    options = replace(options, costs=options.costs or default_cost_file())
    job = CalibrateJob(models=arguments.models, seconds=seconds, options=options.as_json())
    limits = Limits(seconds + GRACE, options.memory_limit << 20 or default_memory_limit())
    with Live(console, arguments.quiet) as tell:
        done = run_job(job, limits, tell, Watched(), patient=True)
    report = CalibrationReport.model_validate(done.report)
    _show(console, report)
    return report


def _show(console: Console, report: CalibrationReport) -> None:
    for model in report.models:
        searched = ", searched to the end" if model.searched else ""
        best = f", best options: {model.options}" if model.options else ""
        share = f"{model.share:.0%} of its predicted time known"
        say(console, f"{model.path}: {model.signatures} signatures in {model.regions} regions, {share}{searched}{best}")
        for note in model.notes:
            say(console, f"note: {model.path}: {note}")
    say(console, f"sample operators: {_tally(report.samples)}")
    say(console, f"signatures: {_tally(report.signatures)}")
    say(console, f"candidates and second looks: {report.candidates} measured")
    e = report.environment
    driver = f", driver {e.driver}" if e.driver else ""
    ended = "interrupted after" if report.interrupted else "in"
    say(
        console,
        f"{report.costs}: {e.device}{driver}, onnxruntime {e.onnxruntime}, {ended} {duration(report.seconds)}",
        style="bold",
    )


def _tally(tally: Tally) -> str:
    failed = f", {tally.failed} cannot run alone" if tally.failed else ""
    return f"{tally.known} known, {tally.measured} measured, {tally.left} left{failed}"
