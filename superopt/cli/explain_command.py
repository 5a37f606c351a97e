"""`superopt optimize --explain`: call and print. The explanation is the answer, so it goes to stdout."""

from __future__ import annotations

import argparse

from rich.console import Console

from superopt.engine.job import ExplainJob, Stage
from superopt.engine.watch import Limits, Watched, default_memory_limit, run_job
from superopt.options import Options
from superopt.report import Explained, ExplainReport, Report

_STYLES = {"used": "green", "matches": "yellow"}


def explained(arguments: argparse.Namespace, options: Options, report: Report | None = None) -> ExplainReport:
    """With the report of a search, what was used is told too."""
    job = ExplainJob(
        model=arguments.model, nodes=arguments.explain, options=options.as_json(),
        report=None if report is None else report.model_dump(mode="json"),
    )  # fmt: skip
    limits = Limits(options.time_limit, options.memory_limit << 20 or default_memory_limit())
    return ExplainReport.model_validate(run_job(job, limits, _silent, Watched()).report)


def show_explained(nodes: list[Explained]) -> None:
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for node in nodes:
        console.print(f"{node.place}: {node.operator} that computes {', '.join(node.outputs)}", style="bold")
        for line, style in _lines(node):
            console.print(f"  {line}", style=style if console.is_terminal else None)


def _lines(node: Explained) -> list[tuple[str, str | None]]:
    lines: list[tuple[str, str | None]] = [(f"pass {told}", None) for told in node.passes]
    lines += [(f"rewritten: {told}", "green") for told in node.steps]
    if node.barrier:
        lines.append((f"no rule may touch it: {node.barrier}", None))
    if node.detail:
        return [*lines, *((line, None) for line in node.detail)]
    width = max((len(a.rule) for a in node.attempts), default=0)
    for a in node.attempts:
        lines.append((f"{a.outcome:9s} {a.rule:{width}s}  {a.reason}".rstrip(), _STYLES.get(a.outcome)))
    if not node.barrier and not node.attempts:
        lines.append((f"no rule begins with {node.operator}", None))
    return lines


def _silent(stage: Stage) -> None:
    """It takes a few seconds: nothing to watch."""
