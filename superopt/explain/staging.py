"""A scene made from a run: bounded, whatever the model holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import cast

from superopt.explain.difference import Difference
from superopt.explain.drawing import line_path
from superopt.explain.figures import plural
from superopt.explain.gains import steps
from superopt.explain.layout import lay_out
from superopt.explain.markup import shorten, visible
from superopt.explain.scene import BoxKind, Picture, RuleCount, RuleGain, Scene, SceneBox, SceneLine, SceneRegion
from superopt.explain.sketches import Sketch, region_sides, whole
from superopt.explain.summary import Numbered, all_regions, region_lines
from superopt.explain.trace import rewrites_by_region
from superopt.report import Report, Rewrite

MOST_WHOLE = 6_000
"""Boxes of a picture of the whole; what has more is shown by its regions alone."""

MOST_BOXES = 12_000
"""Boxes of all regions together."""

MOST_REGIONS = 1_000
MOST_RULES = 2_000
MOST_LINES, LONGEST = 200, 400
"""Lines of a region in text form, and letters of one of them."""


def stage(report: Report, difference: Difference | None, note: str = "") -> Scene:
    """`difference` is None where there is no candidate to show, or it could not be drawn."""
    gained = [
        RuleGain(name=_text(step.name), count=step.count, gained_us=step.gained, measured=step.measured)
        for step in steps(report.rewrites)[:MOST_RULES]
    ]
    returned = report.returned == "optimized"
    if difference is None or difference.same:
        return Scene(returned=returned, rules=gained, before=None, after=None, regions=[], note=note)
    sketches = [whole(difference, side) for side in (0, 1)]
    notes = [note] if note else []
    if max(len(sketch.shapes) for sketch in sketches) > MOST_WHOLE:
        notes.append("the graphs are too large to be drawn as a whole")
        sketches = []
    before, after = map(_placed, sketches) if sketches else (None, None)
    regions, left_out = _regions(difference, rewrites_by_region(difference, report.rewrites))
    if left_out:
        notes.append(f"{plural(left_out, 'changed region')} not drawn")
    return Scene(
        returned=returned, rules=gained, before=before, after=after, regions=regions, note="; ".join(notes)
    )  # fmt: skip


def _regions(difference: Difference, made: Mapping[int, Sequence[Rewrite]]) -> tuple[list[SceneRegion], int]:
    """As many as there is room for, and how many have no picture."""
    found: list[SceneRegion] = []
    room, left_out = MOST_BOXES, 0
    everything = all_regions(difference)
    for numbered in islice(everything, MOST_REGIONS):
        sides = region_sides(numbered.difference, numbered.region, numbered.number)
        boxes = sum(len(side.shapes) for side in sides)
        fits = boxes <= room
        room -= boxes if fits else 0
        left_out += not fits
        found.append(_region(numbered, sides if fits else (), made.get(numbered.number, ())))
    return found, left_out + sum(1 for _ in everything)


def _region(numbered: Numbered, sides: Sequence[Sketch], made: Sequence[Rewrite]) -> SceneRegion:
    region = numbered.region
    before, after = (_placed(side) if side.shapes else None for side in sides) if sides else (None, None)
    counts = Counter(rewrite.name for rewrite in made).most_common()
    return SceneRegion(
        number=numbered.number,
        place=_text(numbered.place),
        removed=region.removed,
        added=region.added,
        changed=len(region.changed),
        like=numbered.like,
        rules=[RuleCount(name=_text(name), count=count) for name, count in counts],
        lines=list(_listing(region_lines(numbered.difference, region))),
        before=before,
        after=after,
    )


def _listing(lines: Sequence[str]) -> Iterator[str]:
    yield from map(_text, lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        yield f"  … {len(lines) - MOST_LINES} more lines"


def _placed(sketch: Sketch) -> Picture:
    boxes = [shape.box for shape in sketch.shapes]
    placed = lay_out(boxes, sketch.lines)
    return Picture(
        label=sketch.label,
        width=round(placed.width),
        height=round(placed.height),
        boxes=[
            SceneBox(
                kind=cast("BoxKind", shape.kind), head=_text(shape.head), foot=_text(shape.foot),
                title=_text(shape.title), x=round(x - box.width / 2), y=round(y - box.height / 2),
                width=round(box.width), height=round(box.height), region=shape.region,
            )
            for shape, box, (x, y) in zip(sketch.shapes, boxes, placed.centres, strict=True)
        ],
        lines=[
            SceneLine(source=a, target=b, path=line_path(boxes, (a, b), points) if points else "")
            for (a, b), points in placed.lines.items()
        ],
    )  # fmt: skip


def _text(text: str) -> str:
    """Of the model's making: no longer than a person reads, and without characters that no font shows."""
    return visible(shorten(text, LONGEST))
