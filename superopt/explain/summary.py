"""A difference as a record: what `superopt diff` prints, in words or as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from superopt.explain.difference import Difference
from superopt.explain.regions import Region
from superopt.ir.onnx import Model, facts
from superopt.ir.text import format_name
from superopt.report import DiffRegion, DiffReport


def summarize(before: Model, after: Model, difference: Difference) -> DiffReport:
    surroundings = [*_versions(before, after), *difference.interface]
    return DiffReport(
        same=difference.same and not surroundings,
        before=facts(before),
        after=facts(after),
        kept=difference.count("kept"),
        changed=difference.count("changed"),
        removed=difference.count("removed"),
        added=difference.count("added"),
        surroundings=surroundings,
        regions=[_told(region) for region in all_regions(difference)],
    )


def region_lines(difference: Difference, region: Region) -> list[str]:
    """The region as a listing: constants it reads, what was there, what is there now."""
    old = difference.before.constant_lines(region.before)
    new = difference.after.constant_lines(region.after)
    both = [line for line in old if line in new]
    return [
        *(f"  {line}" for line in both),
        *(f"- {line}" for line in old if line not in both),
        *(f"- {difference.before.lines[node]}" for node in region.before),
        *(f"+ {line}" for line in new if line not in both),
        *(f"+ {difference.after.lines[node]}" for node in region.after),
    ]


def region_place(difference: Difference, region: Region) -> str:
    if region.before:
        return difference.before.name(region.before[0])
    return difference.after.name(region.after[0])


@dataclass(frozen=True)
class Numbered:
    """A region of a graph or of a body inside it, under the number that people are told."""

    number: int
    place: str
    like: int | None
    region: Region
    difference: Difference
    """Of the graph that it is in."""


def all_regions(difference: Difference, where: str = "", offset: int = 0) -> Iterator[Numbered]:
    """Those of a graph, then those of its nodes' bodies, numbered on."""
    for region in difference.regions:
        like = None if region.like is None else region.like + offset
        yield Numbered(region.number + offset, where + region_place(difference, region), like, region, difference)
    offset += len(difference.regions)
    for node, name, inside in difference.nested:
        for found in all_regions(inside, f"{where}{difference.before.name(node)}/{name}/", offset):
            offset = found.number
            yield found


def _told(numbered: Numbered) -> DiffRegion:
    region = numbered.region
    return DiffRegion(
        number=numbered.number,
        place=numbered.place,
        removed=region.removed,
        added=region.added,
        changed=len(region.changed),
        like=numbered.like,
        lines=region_lines(numbered.difference, region),
    )


def _versions(before: Model, after: Model) -> Iterator[str]:
    if before.ir_version != after.ir_version:
        yield f"- IR version {before.ir_version}"
        yield f"+ IR version {after.ir_version}"
    for domain in sorted({*before.opsets, *after.opsets}):
        old, new = before.opsets.get(domain), after.opsets.get(domain)
        if old != new:
            shown = format_name(domain or "ai.onnx")
            yield from (f"{sign} opset {shown} {v}" for sign, v in (("-", old), ("+", new)) if v is not None)
