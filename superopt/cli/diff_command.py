"""`superopt diff`: call and print. The difference is the answer, so it goes to stdout."""

from __future__ import annotations

import argparse

from rich.console import Console

from superopt.engine.job import Stage
from superopt.engine.pages import diff
from superopt.explain.text import format_diff
from superopt.options import Options
from superopt.report import DiffReport

_STYLES = {"-": "red", "+": "green", "@": "bold"}


def run_diff(arguments: argparse.Namespace, options: Options) -> DiffReport:
    report = diff(arguments.model, arguments.other, options, _silent, html=arguments.html)
    if not arguments.json and not arguments.quiet:
        console = Console(highlight=False, markup=False, soft_wrap=True)
        for line in format_diff(report, every=arguments.all):
            console.print(line, style=_STYLES.get(line[:1]) if console.is_terminal else None)
    return report


def _silent(stage: Stage) -> None:
    """Loading and comparing take about a second: nothing to watch."""
