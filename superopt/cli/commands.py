"""What each command calls and prints."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from rich.console import Console

from superopt.cli.audit_command import run_audit
from superopt.cli.explain_command import explained, show_explained
from superopt.cli.live import Live
from superopt.cli.parser import options_of
from superopt.cli.tables import show_bench, show_check, show_report
from superopt.engine.deliver import deliver
from superopt.engine.job import BenchJob, CheckJob
from superopt.engine.watch import Limits, Watched, default_memory_limit, run_job
from superopt.errors import BadOption
from superopt.ir.files import clear_write_errors, refuse_unwritable
from superopt.options import Options
from superopt.report import BenchReport, CheckReport, Explained, Record, Report

PLAIN_WIDTH = 140
"""Columns of a table that goes to a file or a pipe, unless COLUMNS says otherwise."""


def run(arguments: argparse.Namespace) -> int:
    if arguments.command == "schema":
        print(json.dumps(Report.model_json_schema(), indent=2))
        return 0
    _refuse_bad_report(arguments)
    console = Console(stderr=True, quiet=arguments.quiet)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PLAIN_WIDTH
    if arguments.command in ("rules", "ops"):
        from superopt.cli.rule_commands import run_ops, run_rules  # operators are loaded for these alone

        return run_ops(arguments) if arguments.command == "ops" else run_rules(arguments, console)
    if arguments.command == "costs":
        from superopt.cli.costs_command import run_costs  # likewise

        return run_costs(arguments, console)
    if arguments.command == "generate-rules":
        if arguments.models:
            from superopt.cli.mine_command import run_mine  # likewise

            return run_mine(arguments, console)
        from superopt.cli.generate_command import run_generate  # operators and the prover are loaded for this alone

        return run_generate(arguments, console)
    if arguments.command in ("serve", "token"):
        from superopt.cli.service_command import run_serve, run_token  # the service is loaded for these alone

        return run_serve(arguments) if arguments.command == "serve" else run_token(arguments)
    commands = {
        "optimize": _optimize,
        "check": _check,
        "bench": _bench,
        "diff": _diff,
        "audit": _audit,
        "calibrate": _calibrate,
        "remote": _remote,
    }
    return commands[arguments.command](arguments, options_of(arguments), console)


def _optimize(arguments: argparse.Namespace, options: Options, console: Console) -> int:
    alone = arguments.output is None and not arguments.dry_run
    if alone and not arguments.explain:
        raise BadOption("optimize: say where the result goes with -o OUT.onnx, or --dry-run")
    if arguments.explain:
        answer = explained(arguments, options)  # before a search too: a name that no node has is told at once
        if alone:
            _explain(answer.explained, arguments)
            _emit(answer, arguments)
            return 0
    with Live(console, arguments.quiet) as tell:
        out = None if arguments.dry_run else arguments.output
        delivered = deliver(arguments.model, out, options, tell, arguments.html, patient=True, turn=arguments.turn)
    report = delivered.report
    show_report(console, report)
    if arguments.explain:
        answer = explained(arguments, options, report)
        report = report.model_copy(update={"explained": answer.explained})
        _explain(answer.explained, arguments)
    _emit(report, arguments)
    if delivered.stopped is not None:
        print(f"superopt: {delivered.stopped}; the original was kept", file=sys.stderr)
        return delivered.stopped.exit_code
    return 1 if report.check.status == "different" else 0


def _explain(nodes: list[Explained], arguments: argparse.Namespace) -> None:
    if not arguments.json and not arguments.quiet:
        show_explained(nodes)


def _check(arguments: argparse.Namespace, options: Options, console: Console) -> int:
    job = CheckJob(original=arguments.model, candidate=arguments.other, options=options.as_json())
    with Live(console, arguments.quiet) as tell:
        done = run_job(job, _limits(options), tell, Watched())
    report = CheckReport.model_validate(done.report)
    show_check(console, report)
    _emit(report, arguments)
    return {"equal": 0, "different": 1, "unchecked": 2}[report.status]


def _bench(arguments: argparse.Namespace, options: Options, console: Console) -> int:
    job = BenchJob(models=arguments.models, options=options.as_json())
    with Live(console, arguments.quiet) as tell:
        done = run_job(job, _limits(options), tell, Watched())
    report = BenchReport.model_validate(done.report)
    show_bench(console, report)
    _emit(report, arguments)
    return 0 if all(row.latency is not None for row in report.rows) else 2


def _diff(arguments: argparse.Namespace, options: Options, console: Console) -> int:
    from superopt.cli.diff_command import run_diff  # pages are drawn for this alone

    report = run_diff(arguments, options)
    _emit(report, arguments)
    return 0 if report.same else 1


def _audit(arguments: argparse.Namespace, options: Options, console: Console) -> int:
    report = run_audit(arguments, options, console)
    _emit(report, arguments)
    return 0 if report.confirmed else 1


def _calibrate(arguments: argparse.Namespace, options: Options, console: Console) -> int:
    from superopt.cli.calibrate_command import run_calibrate  # cost files are opened for this alone

    report = run_calibrate(arguments, options, console)
    _emit(report, arguments)
    return 0


def _remote(arguments: argparse.Namespace, options: Options, console: Console) -> int:
    from superopt.cli.service_command import run_remote  # httpx is loaded for this alone

    report, code = run_remote(arguments, options, console)
    _emit(report, arguments)
    return code


def _limits(options: Options) -> Limits:
    return Limits(options.time_limit, options.memory_limit << 20 or default_memory_limit())


def _refuse_bad_report(arguments: argparse.Namespace) -> None:
    """Before the work, not after it; and never over a model, nor one over the other."""
    given = vars(arguments)
    others = [given.get(name) for name in ("model", "other", "audited", "output", "inputs", "costs", "keep_rules")]
    for name, what in (("report", "the report"), ("html", "the page")):
        wanted: Path | None = given.get(name)
        if wanted is None:
            continue
        for path in (*given.get("models", ()), *others):
            if path is not None and _same(wanted, path):
                raise BadOption(f"--{name} {wanted}: would replace {path}; choose another name")
        refuse_unwritable(wanted, what)
        others.append(wanted)


def _same(a: Path, b: Path) -> bool:
    return a.absolute() == b.absolute() or (a.exists() and b.exists() and a.samefile(b))


def _emit(report: Record, arguments: argparse.Namespace) -> None:
    text = report.model_dump_json(indent=2)
    if arguments.json:
        print(text)
    if arguments.report is not None:
        path: Path = arguments.report
        with clear_write_errors(path):
            path.write_text(text + "\n")
