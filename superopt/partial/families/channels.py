"""Channels folded into space: pairs of channels as neighbouring rows, read by kernels twice as tall at twice the
stride."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from superopt.ops.registry import Registry
from superopt.partial.families.single import Single, single
from superopt.partial.program import Mutant, Original, Shape
from superopt.partial.writing import Writer, listing, replaced

FOLDS = (2,)


def folded(original: Original, shapes: Mapping[str, Shape], _: Registry) -> Iterator[Mutant]:
    found = single(original, shapes)
    if found is None or found.window.group != "1":
        return
    symbol, w = found.channels, found.window
    for fold in FOLDS:
        if shapes[w.x][1] % fold:
            continue
        if symbol in original.sizes:
            divided = single(original.divided(symbol, fold), shapes)
            rest = symbol
        else:
            divided, rest = found, str(shapes[w.x][1] // fold)
        for axis in range(w.rank):
            if divided is not None and (w.dilations[axis] == 1 or w.kernel[axis] == 1):
                doc = f"{fold} channels each folded into axis {axis + 2}."
                yield divided.mutant("channels", _written(divided, axis, fold, rest), doc)


def _written(found: Single, axis: int, fold: int, rest: str) -> list[str]:
    writer, w = Writer(found.original.names), found.window
    x = _folded(writer, w.x, found.batch, w.sizes, axis, fold, rest)
    k = _folded(writer, w.k, found.filters, w.kernel, axis, fold, rest)
    wide = w.changed(
        before=replaced(w.before, axis, fold * w.before[axis]),
        after=replaced(w.after, axis, fold * w.after[axis]),
        strides=replaced(w.strides, axis, fold * w.strides[axis]),
        dilations=replaced(w.dilations, axis, 1),
    )
    writer.put(wide.call(x, k), w.target)
    return writer.lines


def _folded(writer: Writer, x: str, lead: str, sizes: Shape, axis: int, fold: int, rest: str) -> str:
    """[n, fold·c, …, h, …] as [n, c, …, h·fold, …]."""
    apart = writer.put(f"Reshape({x}, shape={listing([lead, fold, rest, *sizes])})")
    order = [0, 2, *range(3, 4 + axis), 1, *range(4 + axis, 3 + len(sizes))]
    turned = writer.put(f"Transpose({apart}, perm={order})")
    return writer.put(f"Reshape({turned}, shape={listing([lead, rest, *replaced(sizes, axis, fold * sizes[axis])])})")
