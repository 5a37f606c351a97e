"""The images of a batch stacked into one tall image, the opposite of tiles.

Without zero rows between them they are wrong along the seams; with as many as windows read they are right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from superopt.ops.registry import Registry
from superopt.partial.families.single import Single, single
from superopt.partial.program import Mutant, Original, Shape
from superopt.partial.writing import Writer, listing, replaced

MOST_IMAGES = 64


def stacked(original: Original, shapes: Mapping[str, Shape], _: Registry) -> Iterator[Mutant]:
    found = single(original, shapes)
    if found is None:
        return
    images = shapes[found.window.x][0]
    if not 1 < images <= MOST_IMAGES:
        return
    pinned = single(original.pinned([found.batch]), shapes)
    if pinned is None or pinned.batch != str(images):
        return
    for axis in range(pinned.window.rank):
        for block in sorted(_blocks(pinned, axis)):
            doc = f"{images} images stacked along axis {axis + 2}, {block - pinned.window.sizes[axis]} rows apart."
            yield pinned.mutant("stacked", _written(pinned, images, axis, block), doc)


def _blocks(found: Single, axis: int) -> set[int]:
    """Rows that an image takes up: as many as it has, where that gives the right number of results; and enough."""
    w = found.window
    n, s, m = w.sizes[axis], w.strides[axis], w.outputs[axis]
    gap = max(w.before[axis], w.overhang[axis], 0)
    enough = max(-(-(n + gap) // s) * s, m * s)
    return {enough, *([n] if n == m * s else [])}


def _written(found: Single, images: int, axis: int, block: int) -> list[str]:
    writer, w = Writer(found.original.names), found.window
    place = axis + 2
    zeros = [0] * w.rank
    x = writer.padded(w.x, zeros, replaced(zeros, axis, block - w.sizes[axis]))
    order = [*range(1, place), 0, *range(place, w.rank + 2)]
    x = writer.put(f"Transpose({x}, perm={order})")
    x = writer.put(f"Reshape({x}, shape={listing([1, found.channels, *replaced(w.sizes, axis, images * block)])})")
    after = max(0, w.extents[axis] - w.before[axis] - w.strides[axis])
    y = writer.put(w.changed(after=replaced(w.after, axis, after)).call(x))
    rows = block // w.strides[axis]
    apart = [found.filters, *w.outputs[:axis], images, rows, *w.outputs[axis + 1 :]]
    y = writer.put(f"Reshape({y}, shape={listing(apart)})")
    back = [order.index(k) for k in range(w.rank + 2)]
    whole = rows == w.outputs[axis]
    y = writer.put(f"Transpose({y}, perm={back})", w.target if whole else None)
    if not whole:
        writer.cut(y, (None, None, *replaced([None] * w.rank, axis, (0, w.outputs[axis]))), w.target)
    return writer.lines
