"""Where the time went: microseconds per rule as a waterfall, microseconds per operator before and after."""

from __future__ import annotations

from collections.abc import Sequence

from superopt.explain.figures import microseconds, plural
from superopt.explain.gains import Step, rule_numbers, steps
from superopt.explain.markup import Markup, element, shorten
from superopt.report import Profile, Report

MOST_ROWS = 18
LEAST = 0.05
"""Microseconds below which a number would be shown as nothing."""

FINE = 1000
"""Steps of the scale that bars are drawn on."""


def waterfall(report: Report) -> Markup:
    """From the time before to the time after, rule by rule. What no rule accounts for is a line of its own."""
    before, after = report.timing.before, report.timing.after
    if before is None or after is None:
        return element(
            "p", f"There is no time to divide up: {report.timing.reason or 'nothing was timed'}.", class_="dim"
        )
    start, end = before.median * 1e6, after.median * 1e6
    timed = [step for step in steps(report.rewrites) if step.gained is not None]
    shown, rest = timed[:MOST_ROWS], timed[MOST_ROWS:]
    if rest:
        gained = sum(step.gained or 0.0 for step in rest)
        shown.append(
            Step(plural(len(rest), "more rule"), sum(s.count for s in rest), gained, all(s.measured for s in rest))
        )
    numbers = rule_numbers(report.rewrites)
    levels = [start]
    for step in shown:
        levels.append(levels[-1] - (step.gained or 0.0))
    top = max(start, end, *levels)
    rows = [_row("before", "", 0, start, top, microseconds(start), "was")]
    for step, high, low in zip(shown, levels, levels[1:], strict=False):
        kind = "predicted" if not step.measured else ""
        label = f"{step.count} ×" + (f", {kind}" if kind else "")
        number = numbers.get(step.name)
        name = step.name if number is None else element("a", shorten(step.name, 60), href=f"#rule-{number}")
        rows.append(_row(name, label, low, high, top, _signed(low - high), "gain" if low <= high else "loss"))
    left = levels[-1] - end
    if report.rewrites:
        name = "not told apart" if shown else "all rewrites together"
        note = "passes, and what regions do to each other" if shown else "none was timed alone"
        rows.append(_row(name, note, end, levels[-1], top, _signed(-left), "rest"))
    rows.append(_row("after", "", 0, end, top, microseconds(end), "now"))
    return element("div", rows, class_="chart")


def _row(name: str, note: str, low: float, high: float, top: float, value: str, kind: str) -> Markup:
    low, high = sorted((max(low, 0.0), max(high, 0.0)))
    x, width = round(low / top * FINE), max(round((high - low) / top * FINE), 3)
    return element(
        "div",
        element("span", name, element("small", f" {note}") if note else "", class_="name"),
        _bars([(x, width, kind)]),
        element("span", value, class_="value"),
        class_=f"row {kind}",
    )


def _signed(value: float) -> str:
    if abs(value) < LEAST:
        return "0 µs"
    return f"{'−' if value < 0 else '+'}{microseconds(abs(value))}"


def _bars(bars: Sequence[tuple[int, int, str]]) -> Markup:
    """Bars above one another on the common scale."""
    height = 10 // len(bars)
    return element(
        "svg",
        [
            element("rect", x=x, y=i * height, width=w, height=height - (len(bars) > 1), class_=k)
            for i, (x, w, k) in enumerate(bars)
        ],
        viewBox=f"0 0 {FINE} 10",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def profile_chart(profile: Profile) -> Markup:
    """Each operator that onnxruntime executed: before above, after below."""
    names = sorted(
        {*profile.before, *profile.after}, key=lambda n: (-max(profile.before.get(n, 0), profile.after.get(n, 0)), n)
    )
    top = max([*profile.before.values(), *profile.after.values()], default=0.0)
    if top <= 0:
        return element("p", "onnxruntime's profiler reported no operator.", class_="dim")
    rows = [_pair(n, profile.before.get(n, 0.0), profile.after.get(n, 0.0), top) for n in names[:MOST_ROWS]]
    rest = names[MOST_ROWS:]
    if rest:
        old, new = (sum(side.get(n, 0.0) for n in rest) for side in (profile.before, profile.after))
        rows.append(_pair(plural(len(rest), "more operator"), old, new, max(top, old, new)))
    totals = sum(profile.before.values()), sum(profile.after.values())
    rows.append(_sum_row(*totals))
    note = f"Average of {plural(profile.runs, 'run')} under onnxruntime's profiler, which costs time itself."
    return element("div", rows, class_="chart pairs") + element("p", f"{note} {profile.note}".strip(), class_="dim")


def _pair(name: str, before: float, after: float, top: float) -> Markup:
    bars = [(0, max(round(v / top * FINE), 2) if v else 0, kind) for v, kind in ((before, "was"), (after, "now"))]
    return element(
        "div",
        element("span", shorten(name, 40), class_="name", title=name),
        _bars(bars),
        element("span", _plain(before), class_="value was"),
        element("span", _plain(after), class_="value now"),
        class_="row",
    )


def _sum_row(before: float, after: float) -> Markup:
    return element(
        "div",
        element("span", "sum", class_="name"),
        element("span"),
        element("span", _plain(before), class_="value was"),
        element("span", _plain(after), class_="value now"),
        class_="row total",
    )


def _plain(value: float) -> str:
    return microseconds(value) if value else "—"
