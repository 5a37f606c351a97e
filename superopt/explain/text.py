"""A difference as text: counts of operators, then each region as a `-`/`+` listing."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from superopt.report import DiffRegion, DiffReport, ModelFacts

PLACES = 8
"""How many places of alike regions are named before the rest is counted."""


def format_diff(report: DiffReport, *, every: bool = False) -> Iterator[str]:
    """Lines. Regions of one shape are listed once, unless `every` one is asked for."""
    yield f"--- {_model(report.before)}"
    yield f"+++ {_model(report.after)}"
    yield ""
    yield from _operators(report.before, report.after)
    if report.same:
        yield f"same structure: {_count(report.kept, 'node')}, none changed"
        return
    yield (
        f"{report.kept} of {_count(report.before.nodes - _constants(report.before), 'node')} kept, "
        f"{report.changed} changed, {report.removed} removed, {report.added} added, "
        f"in {_count(len(report.regions), 'region')}"
    )
    yield from report.surroundings
    alike: dict[int, list[DiffRegion]] = defaultdict(list)
    for region in report.regions:
        if region.like is not None:
            alike[region.like].append(region)
    for region in report.regions:
        if every or region.like is None:
            yield ""
            yield from _region(region, [] if every else alike[region.number])


def _region(region: DiffRegion, others: list[DiffRegion]) -> Iterator[str]:
    parts = [(region.removed, "removed"), (region.added, "added"), (region.changed, "changed")]
    what = ", ".join(f"{count} {word}" for count, word in parts if count)
    yield f"@@ region {region.number}, at {_quoted(region.place)}: {what}"
    yield from region.lines
    if others:
        named = ", ".join(f"{r.number} at {_quoted(r.place)}" for r in others[:PLACES])
        more = f" and {len(others) - PLACES} more" if len(others) > PLACES else ""
        yield f"@@ the same in region {named}{more}"


def _operators(before: ModelFacts, after: ModelFacts) -> Iterator[str]:
    """Operators whose count differs, as a table; the others in one line."""
    names = list(dict.fromkeys([*before.operators, *after.operators]))
    counts = [(n, before.operators.get(n, 0), after.operators.get(n, 0)) for n in names]
    moved = sorted((row for row in counts if row[1] != row[2]), key=lambda row: (-abs(row[2] - row[1]), row[0]))
    rows = [
        *((_quoted(name), old, new) for name, old, new in moved),
        ("nodes", before.nodes, after.nodes),
        ("parameters", before.parameters, after.parameters),
        ("bytes", before.file_bytes, after.file_bytes),
    ]
    if all(old == new for _, old, new in rows):
        return
    width = max(len(row[0]) for row in rows)
    yield f"{'':{width}s}  {'before':>12s}  {'after':>12s}"
    for name, old, new in rows:
        yield f"{name:{width}s}  {old:12d}  {new:12d}" + (f"  {new - old:+d}" if new != old else "")
    same = [f"{_quoted(name)} {count}" for name, count, other in counts if count == other]
    if same:
        yield f"as many of: {', '.join(same)}"
    yield ""


def _model(facts: ModelFacts) -> str:
    opset = ", ".join(f"{_quoted(domain or 'ai.onnx')} {version}" for domain, version in facts.opsets.items())
    return f"{_quoted(facts.path or 'model')}  {_count(facts.nodes, 'node')}, {opset}"


def _constants(facts: ModelFacts) -> int:
    return facts.operators.get("Constant", 0)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _quoted(text: str) -> str:
    """As it is, unless it holds what a terminal would act upon."""
    return text if text.isprintable() else json.dumps(text)
