"""Convolutions with unequal filters as one: kernels padded to a common size, counts of filters to a common one.

Of one input, they are stacked along the filters. Of inputs of their own, they become groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from superopt.ops.registry import Registry
from superopt.partial.program import Mutant, Original, Shape
from superopt.partial.window import Window, windows
from superopt.partial.writing import Writer, listing


def merged(original: Original, shapes: Mapping[str, Shape], _: Registry) -> Iterator[Mutant]:
    found = list(windows(original, shapes).values())
    inputs = {g.name for g in original.given}
    if len(found) < 2 or len(found) != len(original.steps) or any(not {w.x, w.k} <= inputs for w in found):
        return
    first = found[0]
    same = {(w.strides, w.dilations, w.outputs, w.group, w.b is None, w.sizes) for w in found}
    if len(same) != 1 or first.group != "1" or not _common(found):
        return
    if len({w.x for w in found}) == 1:
        yield _mutant(original, _stacked(original, found), "Convolutions of one input, kernels padded to one size.")
    elif len({w.x for w in found}) == len(found) and len({str(original.dims(w.x)) for w in found}) == 1:
        yield from _grouped(original, shapes, found)


def _mutant(original: Original, lines: list[str], doc: str) -> Mutant:
    return Mutant("merged", original, original.rule(lines, doc))


def _common(found: Sequence[Window]) -> bool:
    """Whether all windows can start at one place: their paddings differ by whole steps of the dilation."""
    first = found[0]
    return all((w.before[k] - first.before[k]) % first.dilations[k] == 0 for w in found for k in range(first.rank))


def _kernel(found: Sequence[Window]) -> tuple[Shape, Shape]:
    """A kernel that holds all others, and the padding before it."""
    first = found[0]
    before = tuple(max(w.before[k] for w in found) for k in range(first.rank))
    sizes = [
        max(w.kernel[k] + (before[k] - w.before[k]) // first.dilations[k] for w in found) for k in range(first.rank)
    ]
    return tuple(sizes), before


def _enlarged(writer: Writer, found: Sequence[Window]) -> tuple[list[str], Window]:
    """The filters at the common size, and the window for them."""
    first = found[0]
    kernel, before = _kernel(found)
    filters: list[str] = []
    for w in found:
        front = [(b - o) // d for b, o, d in zip(before, w.before, first.dilations, strict=True)]
        behind = [n - k - f for n, k, f in zip(kernel, w.kernel, front, strict=True)]
        filters.append(writer.padded(w.k, front, behind))
    after = [
        max(0, (m - 1) * s + (k - 1) * d + 1 - b - n)
        for m, s, k, d, b, n in zip(
            first.outputs, first.strides, kernel, first.dilations, before, first.sizes, strict=True
        )
    ]
    return filters, first.changed(before=before, after=after)


def _stacked(original: Original, found: Sequence[Window]) -> list[str]:
    writer = Writer(original.names)
    filters, window = _enlarged(writer, found)
    k = writer.joined(filters, 0)
    b = None if window.b is None else writer.joined([str(w.b) for w in found], 0)
    y = writer.put(window.call(window.x, k, b))
    counts = listing(original.dims(w.k)[0] for w in found)
    writer.lines.append(f"{', '.join(w.target for w in found)} = Split({y}, split={counts}, axis=1)")
    return writer.lines


def _grouped(original: Original, shapes: Mapping[str, Shape], found: Sequence[Window]) -> Iterator[Mutant]:
    """Filters that one has and another lacks are zeros; their results are cut off again."""
    symbols = {str(original.dims(w.k)[0]) for w in found}
    if len(symbols) > 1:
        pinned = original.pinned(symbols)
        original, found = pinned, list(windows(pinned, shapes).values())
    writer = Writer(original.names)
    filters, window = _enlarged(writer, found)
    counts = [str(original.dims(w.k)[0]) for w in found]
    if len(set(counts)) == 1:
        most, each = counts[0], counts[0]
    else:
        most = each = str(max(map(int, counts)))
        missing = [int(most) - int(n) for n in counts]
        filters = [_filled(writer, k, n, window.rank + 2) for k, n in zip(filters, missing, strict=True)]
    biases = [w.b for w in found if w.b is not None]
    if biases and len(set(counts)) > 1:
        biases = [_filled(writer, b, int(most) - int(n), 1) for b, n in zip(biases, counts, strict=True)]
    x = writer.joined([w.x for w in found], 1)
    b = writer.joined(biases, 0) if biases else None
    y = writer.put(window.call(x, writer.joined(filters, 0), b, group=str(len(found))))
    names = [w.target if n == most else writer.fresh() for w, n in zip(found, counts, strict=True)]
    writer.lines.append(f"{', '.join(names)} = Split({y}, split={listing([each] * len(found))}, axis=1)")
    for w, name, n in zip(found, names, counts, strict=True):
        if name != w.target:
            writer.cut(name, (None, (0, int(n)), *(None,) * window.rank), w.target)
    yield _mutant(original, writer.lines, "Convolutions of inputs of their own as groups, filled up with zero filters.")


def _filled(writer: Writer, k: str, zeros: int, rank: int) -> str:
    return writer.padded(k, [0] * rank, [zeros, *[0] * (rank - 1)], first=0)
