"""Where images lie on a canvas: on shelves, one below the other, or side by side where several fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from superopt.partial.program import Shape
from superopt.partial.writing import BOOL, Writer

Shelves = tuple[tuple[int, ...], ...]
"""Images by number, shelf by shelf."""


@dataclass(frozen=True)
class Layout:
    shelves: Shelves
    places: tuple[Shape, ...]
    """By image: its first element on each axis."""
    sizes: tuple[Shape, ...]
    """By image."""
    size: Shape
    """Of the canvas."""


def arrangements(sizes: Sequence[Shape]) -> Iterator[Shelves]:
    """All in one column, all in one row, and the smaller ones side by side below the largest."""
    order = sorted(range(len(sizes)), key=lambda k: sizes[k], reverse=True)
    found: list[Shelves] = [tuple((k,) for k in order)]
    if len(sizes[0]) == 2:
        found.append((tuple(order),))
        width = max(s[1] for s in sizes)
        packed: list[list[int]] = []
        for k in order:
            if packed and sum(sizes[j][1] for j in packed[-1]) + sizes[k][1] <= width:
                packed[-1].append(k)
            else:
                packed.append([k])
        found.append(tuple(tuple(shelf) for shelf in packed))
    yield from dict.fromkeys(found)


def laid_out(sizes: Sequence[Shape], shelves: Shelves, gaps: Sequence[int], strides: Sequence[int]) -> Layout:
    """Places that are multiples of the strides, `gaps` apart on each axis."""
    flat = len(sizes[0]) == 2

    def behind(end: int, axis: int) -> int:
        return -(-(end + gaps[axis]) // strides[axis]) * strides[axis]

    places: dict[int, Shape] = {}
    top = height = width = 0
    for shelf in shelves:
        left = 0
        for k in shelf:
            places[k] = (top, left) if flat else (top,)
            if flat:
                width = max(width, left + sizes[k][1])
                left = behind(left + sizes[k][1], 1)
        height = top + max(sizes[k][0] for k in shelf)
        top = behind(height, 0)
    return Layout(
        shelves, tuple(places[k] for k in range(len(sizes))), tuple(sizes), (height, width) if flat else (height,)
    )


def joined(writer: Writer, layout: Layout, images: Sequence[str], name: str | None = None) -> str:
    """The canvas: each image filled up with zeros to the next one, shelves joined along rows, then one another."""
    flat = len(layout.size) == 2
    tops = [layout.places[shelf[0]][0] for shelf in layout.shelves] + [layout.size[0]]
    rows: list[str] = []
    for shelf, (top, bottom) in zip(layout.shelves, pairwise(tops), strict=True):
        lefts = [layout.places[k][1] for k in shelf] + [layout.size[1]] if flat else []
        cells: list[str] = []
        for position, k in enumerate(shelf):
            fill = [bottom - top - layout.sizes[k][0]]
            if flat:
                fill.append(lefts[position + 1] - lefts[position] - layout.sizes[k][1])
            cells.append(writer.padded(images[k], [0] * len(fill), fill))
        rows.append(writer.joined(cells, 3, name if len(layout.shelves) == 1 else None))
    return writer.joined(rows, 2, name) if len(rows) > 1 else rows[0]


def mask(writer: Writer, layout: Layout) -> str:
    """True where images lie, false in the gaps; put together from parts that are one or the other."""
    return _masked(writer, layout, range(len(layout.sizes)), ())


def _masked(writer: Writer, layout: Layout, images: Sequence[int], lengths: Shape) -> str:
    """The part of a mask that these images reach, of these lengths on the axes that were cut already."""
    axis = len(lengths)
    if axis == len(layout.size):
        filled = writer.put(f"ConstantOfShape(input={[1, 1, *lengths]}, value={int(bool(images))})")
        return writer.put(f"Cast({filled}, to={BOOL})")
    ranges = {k: (layout.places[k][axis], layout.places[k][axis] + layout.sizes[k][axis]) for k in images}
    edges = sorted({0, layout.size[axis], *(edge for ends in ranges.values() for edge in ends)})
    parts = [
        _masked(writer, layout, [k for k, (a, b) in ranges.items() if a <= low and high <= b], (*lengths, high - low))
        for low, high in pairwise(edges)
    ]
    return writer.joined(parts, axis + 2)


def cleared(value: str, images: str) -> str:
    """The canvas with zeros in its gaps. Not by multiplying: a NaN times zero would go on to the next image."""
    return f"Where({images}, {value}, 0)"
