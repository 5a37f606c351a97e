"""Tiles of an image as images of their own: a long axis folded into the batch.

Cut as it is, each tile misses its neighbours' rows, and the result is wrong along the cuts; tiles that overlap by what
a window spans are right everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from superopt.ops.registry import Registry
from superopt.partial.families.single import Single, single
from superopt.partial.program import Mutant, Original, Shape
from superopt.partial.writing import Writer, listing, product, replaced

COUNTS = (2, 4)
"""Tiles on an axis."""
SHORTEST = 3
"""Rows of the result in the smallest tile that is made."""


def tiles(original: Original, shapes: Mapping[str, Shape], _: Registry) -> Iterator[Mutant]:
    found = single(original, shapes)
    if found is None:
        return
    for axis in range(found.window.rank):
        for count in COUNTS:
            if found.window.outputs[axis] < count * SHORTEST:
                continue
            if _divides(found, axis, count):
                doc = f"{count} tiles of axis {axis + 2} as a batch."
                yield found.mutant("tiles", _folded(found, axis, count), doc)
            doc = f"{count} overlapping tiles of axis {axis + 2} as a batch."
            yield found.mutant("tiles", _overlapping(found, axis, count), doc)


def _divides(found: Single, axis: int, count: int) -> bool:
    """Whether a tile alone gives its part of the result's rows."""
    w = found.window
    n, s = w.sizes[axis], w.strides[axis]
    if n % (count * s) or w.outputs[axis] % count:
        return False
    reach = n // count + w.before[axis] + w.after[axis] - w.extents[axis]
    return reach >= 0 and reach // s + 1 == w.outputs[axis] // count


def _folded(found: Single, axis: int, count: int) -> list[str]:
    """[n, c, count·h, w] as [count·n, c, h, w], and the result back."""
    writer, w = Writer(found.original.names), found.window
    place = axis + 2
    order = [place, *(k for k in range(w.rank + 3) if k != place)]
    back = [order.index(k) for k in range(w.rank + 3)]

    def apart(lead: str, channels: str, sizes: Shape) -> list[object]:
        return [lead, channels, *sizes[:axis], count, sizes[axis] // count, *sizes[axis + 1 :]]

    x = writer.put(f"Reshape({w.x}, shape={listing(apart(found.batch, found.channels, w.sizes))})")
    x = writer.put(f"Transpose({x}, perm={order})")
    small = replaced(w.sizes, axis, w.sizes[axis] // count)
    x = writer.put(f"Reshape({x}, shape={listing([product(count, found.batch), found.channels, *small])})")
    y = writer.put(w.call(x))
    parts = apart(found.batch, found.filters, w.outputs)
    y = writer.put(f"Reshape({y}, shape={listing([parts[k] for k in order])})")
    y = writer.put(f"Transpose({y}, perm={back})")
    writer.put(f"Reshape({y}, shape={listing([found.batch, found.filters, *w.outputs])})", w.target)
    return writer.lines


def _overlapping(found: Single, axis: int, count: int) -> list[str]:
    """Every tile with all rows that its part of the result reads; the last one is filled up with zeros."""
    writer, w = Writer(found.original.names), found.window
    rows = -(-w.outputs[axis] // count)
    step = rows * w.strides[axis]
    length = (rows - 1) * w.strides[axis] + w.extents[axis]
    needed = (count - 1) * step + length
    zeros = [0] * w.rank
    after = max(0, needed - w.before[axis] - w.sizes[axis])
    x = writer.padded(w.x, replaced(zeros, axis, w.before[axis]), replaced(zeros, axis, after))
    parts = [
        writer.cut(x, (None, None, *replaced([None] * w.rank, axis, (t * step, t * step + length))))
        for t in range(count)
    ]
    valid = w.changed(before=replaced(w.before, axis, 0), after=replaced(w.after, axis, 0))
    y = writer.put(valid.call(writer.joined(parts, 0)))
    names = writer.split(y, [found.batch] * count, 0)
    whole = rows * count == w.outputs[axis]
    y = writer.joined(names, axis + 2, w.target if whole else None)
    if not whole:
        writer.cut(y, (None, None, *replaced([None] * w.rank, axis, (0, w.outputs[axis]))), w.target)
    return writer.lines
