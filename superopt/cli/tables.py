"""Reports as tables for people."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from superopt.explain.figures import duration, size
from superopt.report import BenchReport, CheckReport, Interval, Latency, ModelFacts, Report

MOST_OPERATORS = 24


def show_report(console: Console, report: Report) -> None:
    """Operators, size and latency, before and after; then the rewrites and the verdict."""
    table = Table(title=escape(report.before.path or "model"), title_justify="left")
    table.add_column("")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    _operator_rows(table, report.before, report.after)
    table.add_section()
    table.add_row("nodes", str(report.before.nodes), str(report.after.nodes))
    table.add_row("size", size(report.before.file_bytes), size(report.after.file_bytes))
    after = report.timing.after if report.returned == "optimized" else report.timing.before
    told = report.prediction
    if told is None:
        table.add_row("latency", latency(report.timing.before), latency(after))
    else:
        seconds = told.after if report.returned == "optimized" else told.before
        table.add_row("latency, predicted, not measured", duration(told.before), duration(seconds))
    console.print(table)
    for name, count in Counter(r.name for r in report.rewrites).most_common():
        say(console, f"  {count:5d} × {name}")
    say(console, f"check: {check_line(report.check)}")
    say(console, f"timed: {timing_line(report)}")
    for note in (*report.check.notes, *report.notes):
        say(console, f"note: {note}")
    say(console, report.verdict, style="bold")


def say(console: Console, text: str, style: str | None = None) -> None:
    """One line, whatever its length: a terminal folds it, a file keeps it whole."""
    console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def _operator_rows(table: Table, before: ModelFacts, after: ModelFacts) -> None:
    """Operators whose count changed come first; the tail of a long list is summed up."""
    names = list(dict.fromkeys([*before.operators, *after.operators]))
    counts = [(n, before.operators.get(n, 0), after.operators.get(n, 0)) for n in names]
    counts.sort(key=lambda row: (row[1] == row[2], -row[1]))
    for name, old, new in counts[:MOST_OPERATORS]:
        changed = old != new
        table.add_row(escape(name), str(old), f"[bold]{new}[/bold]" if changed else str(new))
    rest = counts[MOST_OPERATORS:]
    if rest:
        table.add_row(f"{len(rest)} more", str(sum(r[1] for r in rest)), str(sum(r[2] for r in rest)))


def show_check(console: Console, report: CheckReport) -> None:
    if report.outputs:
        table = Table()
        for column in ("output", "type", "largest difference", "relative", "allowed", "equal"):
            table.add_column(column)
        for o in report.outputs:
            allowed = f"{o.absolute_tolerance:g} + {o.relative_tolerance:g}·|x|"
            row = (o.output, o.dtype, f"{o.max_absolute_error:.3g}", f"{o.max_relative_error:.3g}", allowed)
            table.add_row(*map(escape, row), "yes" if o.equal else "NO")
        console.print(table)
    for note in report.notes:
        say(console, f"note: {note}")
    say(console, check_line(report), style="bold")


def show_bench(console: Console, report: BenchReport) -> None:
    table = Table()
    for column in ("model", "median", "95 % interval", "spread", "runs", "against the first", "peak memory", "size"):
        table.add_column(column, overflow="fold")
    for row in report.rows:
        lat = row.latency
        table.add_row(
            escape(row.model),
            "—" if lat is None else duration(lat.median),
            "—" if lat is None else f"{duration(lat.interval.low)} to {duration(lat.interval.high)}",
            "—" if lat is None else f"{lat.spread:.1%}",
            "—" if lat is None else str(lat.runs),
            _against(row.speedup, row.speedup_interval, row.verdict),
            size(report.peak_memory_bytes),
            size(row.file_bytes),
        )
    console.print(table)
    e = report.environment
    console.print(
        f"{e.device}, onnxruntime {e.onnxruntime}, {e.threads} threads", highlight=False, markup=False, soft_wrap=True
    )
    for note in report.notes:
        say(console, f"note: {note}")


def _against(speedup: float | None, interval: Interval | None, verdict: str) -> str:
    if speedup is None:
        return verdict
    shown = "" if interval is None else f" ({interval.low:.3f} to {interval.high:.3f})"
    return f"{speedup:.3f}×{shown} {verdict}"


def check_line(check: CheckReport) -> str:
    if check.status == "equal":
        return f"equal on {check.runs} input sets"
    return f"{check.status}: {check.reason}"


def timing_line(report: Report) -> str:
    timing, environment = report.timing, report.environment
    if timing.status == "untimed":
        return f"no: {timing.reason}"
    where = f"{environment.device}, onnxruntime {environment.onnxruntime}, {environment.threads} threads"
    frozen = ", from the cost file" if timing.frozen else ""
    if timing.speedup is None or timing.speedup_interval is None:
        return f"{where}{frozen}"
    low, high = timing.speedup_interval.low, timing.speedup_interval.high
    return f"speed-up of the rewritten model {timing.speedup:.3f}× ({low:.3f} to {high:.3f}) on {where}{frozen}"


def latency(value: Latency | None) -> str:
    if value is None:
        return "—"
    return f"{duration(value.median)} ({duration(value.interval.low)} to {duration(value.interval.high)})"
