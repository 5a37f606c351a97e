"""Sections of the page that are tables: what was compared, how to run the result, how to do it again."""

from __future__ import annotations

from collections.abc import Sequence

from superopt.explain.command import reproduce
from superopt.explain.figures import duration, plural, size
from superopt.explain.markup import Markup, element, join
from superopt.report import DeploymentReport, Latency, Portable, PredictionReport, Report, SearchReport


def check_section(report: Report) -> Markup:
    check = report.check
    parts: list[Markup] = []
    if check.reason:
        parts.append(element("p", f"{check.status}: {check.reason}"))
    if check.outputs:
        head = ("output", "type", "largest difference", "relative", "allowed", "equal")
        rows = [
            (
                o.output, o.dtype, f"{o.max_absolute_error:.3g}", f"{o.max_relative_error:.3g}",
                f"{o.absolute_tolerance:g} + {o.relative_tolerance:g}·|x|", "yes" if o.equal else "NO",
            )
            for o in check.outputs
        ]  # fmt: skip
        parts.append(_table(head, rows))
    parts += [element("p", note, class_="dim") for note in check.notes]
    if check.inputs:
        made = element("ul", [element("li", line) for line in check.inputs])
        parts.append(element("details", element("summary", plural(len(check.inputs), "input set")), made))
    return join(parts)


def again_section(report: Report) -> Markup:
    e, b = report.environment, report.before
    shapes = "; ".join(f"{name} {shape}" for name, shape in report.timing.shapes.items())
    facts = [
        ("superopt", e.superopt), ("onnxruntime", e.onnxruntime), ("onnx", e.onnx), ("Python", e.python),
        ("target", e.target), ("device", e.device), ("driver", e.driver or "—"), ("threads", str(e.threads)),
        ("platform", e.platform), ("input shapes", shapes or "—"),
        ("sha256 before", b.sha256), ("sha256 after", report.after.sha256),
        ("latency before", _latency(report.timing.before)), ("latency after", _latency(report.timing.after)),
        ("peak memory", size(report.peak_memory_bytes)), ("took", duration(report.seconds)),
    ]  # fmt: skip
    if report.prediction is not None:
        facts[-4:-2] = prediction_facts(report.prediction)
    options = [(name, str(value)) for name, value in report.options.items()]
    everything = element("details", element("summary", "every option"), _pairs(options))
    return element("pre", reproduce(report), class_="command") + _pairs(facts) + everything


def prediction_facts(told: PredictionReport) -> list[tuple[str, str]]:
    """In the place of latencies, where nothing was timed."""
    return [
        ("predicted, not measured", f"for onnxruntime {told.onnxruntime}, {told.deployment}"),
        ("latency before", f"{duration(told.before)}, {told.before_is}"),
        ("latency after", f"{duration(told.after)}, predicted"),
        ("from", f"{told.costs}: {told.recorded_share:.0%} of a run recorded, {told.samples} sample operators"),
    ]


def running_section(deployment: DeploymentReport, portable: Portable | None) -> Markup:
    """How to open the model as it was measured, and what that rests on."""
    parts = [element("p", _deployment_line(deployment)), element("pre", deployment.code)]
    parts += [element("p", note, class_="dim") for note in deployment.notes]
    if deployment.tried:
        rows = [
            (t.change, t.verdict, "—" if t.speedup is None else f"{t.speedup:.3f}×", "yes" if t.kept else "", t.note)
            for t in deployment.tried
        ]
        table = _table(("option", "verdict", "speed-up", "kept", "note"), rows)
        summary = element("summary", plural(len(deployment.tried), "option"), " tried")
        parts.append(element("details", summary, table))
    if portable is not None:
        parts.append(element("p", _portable_line(portable)))
    return join(parts)


def _deployment_line(deployment: DeploymentReport) -> str:
    if deployment.verdict == "base" or deployment.speedup is None:
        return "No session options were faster than these, with confidence:" if deployment.searched else "As given:"
    return f"These session options made the same graph {deployment.speedup:.2f}× faster than the usual ones:"


def _portable_line(portable: Portable) -> str:
    named = ", ".join(f"{name} {count}" for name, count in portable.operators.items())
    alone = "was not measured" if portable.speedup is None else f"would be {portable.speedup:.2f}× the original's speed"
    return f"Operators of onnxruntime's own: {named}. With standard operators alone the result {alone}. {portable.note}"


def search_line(search: SearchReport) -> Markup:
    ranked = ""
    if search.rank_correlation is not None:
        ranked = f" Predicted and measured times agree in rank by {search.rank_correlation:.2f} (1 is best)."
    ended = "Nothing was left to try." if search.exhausted else "A budget ended the search."
    regions = f"{plural(search.regions, 'region')}, {search.distinct_regions} of different structure searched"
    seen = f"{plural(search.candidates, 'graph')} seen in {duration(search.seconds)}"
    timed = f"{search.measured} timed in {duration(search.measuring_seconds)}"
    return element(
        "p", f"{plural(search.rules, 'proved rule')}; {regions}; {seen}, {timed}. {ended}{ranked}", class_="dim"
    )


def _latency(value: Latency | None) -> str:
    if value is None:
        return "—"
    low, high = duration(value.interval.low), duration(value.interval.high)
    return f"{duration(value.median)} ({low} to {high}), median of {value.runs} runs"


def _pairs(rows: Sequence[tuple[str, str]]) -> Markup:
    return element("dl", [element("dt", name) + element("dd", value) for name, value in rows], class_="facts")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    return element(
        "table",
        element("thead", element("tr", [element("th", cell) for cell in head])),
        element("tbody", [element("tr", [element("td", cell) for cell in row]) for row in rows]),
    )
