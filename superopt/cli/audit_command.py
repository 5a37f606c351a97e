"""`superopt audit`: call and print."""

from __future__ import annotations

import argparse

from rich.console import Console

from superopt.cli.live import Live
from superopt.cli.tables import say
from superopt.engine.job import AuditJob
from superopt.engine.watch import Limits, Watched, default_memory_limit, run_job
from superopt.options import Options
from superopt.report import AuditedWeights, AuditReport


def run_audit(arguments: argparse.Namespace, options: Options, console: Console) -> AuditReport:
    job = AuditJob(
        original=arguments.model, optimized=arguments.other, audited=arguments.audited, specs=arguments.specs,
        options=options.as_json(),
    )  # fmt: skip
    limits = Limits(options.time_limit, options.memory_limit << 20 or default_memory_limit())
    with Live(console, arguments.quiet) as tell:
        done = run_job(job, limits, tell, Watched())
    report = AuditReport.model_validate(done.report)
    _show(console, report)
    return report


def _show(console: Console, report: AuditReport) -> None:
    for line in _confirmed(report):
        say(console, line)
    for note in report.notes:
        say(console, f"note: {note}")
    if report.confirmed:
        say(console, _verdict(report), style="bold")
    for problem in report.problems:
        say(console, f"not confirmed: {problem}", style="bold")


def _verdict(report: AuditReport) -> str:
    if report.returned == "original":
        return f"confirmed: {report.optimized} is the original, byte for byte"
    passes = sum(report.passes.values())
    return (
        f"confirmed: {report.optimized} is what {passes} passes and {report.steps} steps of {len(report.rules)} proved "
        f"rules make of {report.original}; times and outputs are for superopt bench and check"
    )


def _confirmed(report: AuditReport) -> list[str]:
    """What was found to be so, also when something else was not."""
    lines: list[str] = []
    if report.passes:
        told = ", ".join(f"{count} × {name}" for name, count in report.passes.items())
        lines.append(f"passes made again: {told}")
    lines += [f"rule {r.name}, {r.steps} ×: {r.proof}" for r in report.rules]
    if report.steps:
        lines.append(f"steps made again: {report.steps} in {report.regions} regions, each where and as it is told")
    if report.nodes and report.returned == "optimized":
        lines.append(f"nodes: {report.nodes}, each with its operator, attributes, wiring and names")
    if report.weights is not None:
        lines.append(f"constants: {_weights(report.weights)}")
    return lines


def _weights(weights: AuditedWeights) -> str:
    parts = [
        (weights.original, "of the original, bit for bit"),
        (weights.written, "written by rules, bit for bit"),
        (weights.folded, "computed by passes again, bit for bit"),
        (weights.folded_near, "computed by passes again, within one unit in the last place"),
        (weights.combined, "combined again, bit for bit"),
        (weights.combined_near, "combined again, within one unit in the last place"),
    ]
    return "; ".join(f"{count} {how}" for count, how in parts if count) or "none"
