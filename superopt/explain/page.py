"""One HTML file that says it all: no network, no other file, no script but its own.

The page's policy names its style and its script by their digests, so that nothing a model's names could smuggle in
would run even if it got past the escaping.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import PurePath

from superopt.explain.charts import profile_chart, waterfall
from superopt.explain.difference import Difference
from superopt.explain.facts import again_section, check_section, running_section, search_line
from superopt.explain.figures import duration, plural, size
from superopt.explain.gains import rule_numbers
from superopt.explain.graphs import graphs_section
from superopt.explain.markup import Markup, element
from superopt.explain.rewrites import remarks, rewrites_section
from superopt.explain.trace import rewrites_by_region
from superopt.report import DiffReport, ModelFacts, Report


def report_page(report: Report, difference: Difference | None, rules: Mapping[str, str]) -> str:
    """The report of a run; `difference` is None where there is no candidate to show, `rules` are texts by name."""
    parts = [("time", "Time", "Where the time went", _times(report))]
    if difference is not None:
        made = remarks(rewrites_by_region(difference, report.rewrites), rule_numbers(report.rewrites))
        kept = "" if report.returned == "optimized" else "This candidate was not returned: the original was. "
        parts.append(("graphs", "Graphs", "Before and after", _lead(kept) + graphs_section(difference, made)))
    searched = search_line(report.search) if report.search is not None else Markup()
    rewrites = searched + rewrites_section(report.rewrites, rules)
    parts.append(("rewrites", "Proofs", "Rewrites and their proofs", rewrites))
    parts.append(("check", "Check", "Outputs compared", check_section(report)))
    if report.deployment is not None:
        parts.append(("running", "Run it", "How to run it", running_section(report.deployment, report.portable)))
    parts.append(("again", "Reproduce", "Do it again", again_section(report)))
    links = [(anchor, word) for anchor, word, _, _ in parts]
    return _document(
        f"{_name(report.before)} — superopt",
        _header("superopt report", _name(report.before), report.verdict, report.notes, links),
        [_tiles(_report_tiles(report)), *(_section(anchor, title, content) for anchor, _, title, content in parts)],
    )


def diff_page(report: DiffReport, difference: Difference) -> str:
    """Two models compared, without a run behind it."""
    verdict = "Same structure." if report.same else f"{plural(len(report.regions), 'changed region')}."
    sections = [_tiles(_diff_tiles(report))]
    if report.surroundings:
        listing = element("pre", "\n".join(report.surroundings))
        sections.append(_section("surroundings", "Inputs, outputs, versions", listing))
    sections.append(_section("graphs", "Before and after", graphs_section(difference, {})))
    title = f"{_name(report.before)} → {_name(report.after)}"
    return _document(f"{title} — superopt diff", _header("superopt diff", title, verdict, [], []), sections)


def _document(title: str, header: Markup, sections: Sequence[Markup]) -> str:
    folder = files("superopt.explain")
    style = folder.joinpath("page.css").read_text(encoding="utf-8")
    script = folder.joinpath("page.js").read_text(encoding="utf-8")
    allowed = f"style-src {_digest(style)}; script-src {_digest(script)}"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}"/>'),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(style)),
    )
    arrow = Markup(
        '<svg class="defs" width="0" height="0" aria-hidden="true"><defs><marker id="arrow" viewBox="0 0 8 8" refX="7" '
        'refY="4" markerWidth="6" markerHeight="6" orient="auto"><path d="M1 1L7 4L1 7"/></marker></defs></svg>'
    )
    detail = element(
        "aside", element("button", "×", type="button", aria_label="close"), element("pre"), id="detail", hidden=True
    )
    body = element("body", arrow, header, element("main", list(sections)), detail, element("script", Markup(script)))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _header(eyebrow: str, title: str, verdict: str, notes: Sequence[str], links: Sequence[tuple[str, str]]) -> Markup:
    return element(
        "header",
        element("p", eyebrow, class_="eyebrow"),
        element("h1", title),
        element("p", verdict, class_="verdict"),
        [element("p", note, class_="note") for note in notes],
        element("nav", [element("a", word, href=f"#{anchor}") for anchor, word in links]) if links else "",
    )


def _section(anchor: str, title: str, content: Markup) -> Markup:
    return element("section", element("h2", title), content, id=anchor)


def _lead(text: str) -> Markup:
    hint = (
        "Point at a box for its text form, click it for more. Drag a picture to move it, pinch or Ctrl-scroll to zoom."
    )
    return element("p", f"{text}{hint}", class_="dim")


def _tiles(tiles: Sequence[tuple[str, str, str]]) -> Markup:
    """Name, value, what it was before."""
    return element(
        "dl",
        [
            element("div", element("dt", name), element("dd", value), element("dd", was, class_="dim") if was else "")
            for name, value, was in tiles
        ],
        class_="tiles",
    )


def _report_tiles(report: Report) -> list[tuple[str, str, str]]:
    timing, before, after, told = report.timing, report.before, report.after, report.prediction
    tiles: list[tuple[str, str, str]] = []
    if told is not None:
        tiles.append(("speed-up", f"{told.speedup:.2f}×", f"predicted, not measured; cautiously {told.cautious:.2f}×"))
        tiles.append(("latency", duration(told.after), f"predicted, not measured; was {duration(told.before)}"))
    if timing.speedup is not None and timing.speedup_interval is not None:
        low, high = timing.speedup_interval.low, timing.speedup_interval.high
        tiles.append(("speed-up", f"{timing.speedup:.2f}×", f"{low:.2f} to {high:.2f}, 95 % sure"))
    new = report.returned == "optimized"
    if timing.before is not None and timing.after is not None:
        was, now = duration(timing.before.median), duration(timing.after.median)
        tiles.append(("latency", now, f"was {was}") if new else ("latency", was, f"candidate {now}"))
    was, now = f"{before.nodes:,}", f"{report.candidate_nodes:,}"
    tiles.append(("nodes", now, f"was {was}") if new else ("nodes", was, f"candidate {now}"))
    tiles.append(("size", size(after.file_bytes), f"was {size(before.file_bytes)}"))
    word = {"equal": "equal", "different": "different", "unchecked": "unchecked"}[report.check.status]
    tiles.append(("outputs", word, f"on {plural(report.check.runs, 'input set')}"))
    tiles.append(
        ("rewrites", f"{len(report.rewrites):,}", f"of {plural(len({r.name for r in report.rewrites}), 'kind')}")
    )
    return tiles


def _diff_tiles(report: DiffReport) -> list[tuple[str, str, str]]:
    return [
        ("nodes", f"{report.after.nodes:,}", f"was {report.before.nodes:,}"),
        ("size", size(report.after.file_bytes), f"was {size(report.before.file_bytes)}"),
        ("kept", f"{report.kept:,}", ""),
        ("changed", f"{report.changed:,}", ""),
        ("removed", f"{report.removed:,}", ""),
        ("added", f"{report.added:,}", ""),
    ]


def _times(report: Report) -> Markup:
    left = element("h3", "Microseconds per rule") + waterfall(report)
    profile = (
        element("p", "The run made no profile.", class_="dim")
        if report.profile is None
        else profile_chart(report.profile)
    )
    right = element("h3", "Microseconds per operator, before and after") + profile
    return element("div", element("div", left), element("div", right), class_="columns")


def _name(facts: ModelFacts) -> str:
    return PurePath(facts.path).name if facts.path else "model"
