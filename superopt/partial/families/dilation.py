"""A dilated convolution as a plain one: every so many elements of an axis, as images of their own (space to batch)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from superopt.ops.registry import Registry
from superopt.partial.families.single import Single, single
from superopt.partial.program import Mutant, Original, Shape
from superopt.partial.writing import Writer, listing, product


def undilated(original: Original, shapes: Mapping[str, Shape], _: Registry) -> Iterator[Mutant]:
    found = single(original, shapes)
    if found is None or max(found.window.dilations) < 2:
        return
    w = found.window
    if any(s != 1 for s, d in zip(w.strides, w.dilations, strict=True) if d > 1):
        return
    rows = list(zip(w.sizes, w.before, w.after, w.dilations, strict=True))
    if all(not (n % d or b % d or a % d) for n, b, a, d in rows):
        yield found.mutant("dilation", _written(found, inside=True), "Dilation as layout, padded by the convolution.")
    if any(w.before) or any(w.after) or any(n % d for n, _, _, d in rows):
        yield found.mutant("dilation", _written(found, inside=False), "Dilation as layout, padded before it.")


def _written(found: Single, *, inside: bool) -> list[str]:
    """`inside`: the convolution pads, as each of the small images needs."""
    writer, w = Writer(found.original.names), found.window
    dilated = [k for k in range(w.rank) if w.dilations[k] > 1]
    before, after, zeros = list(w.before), list(w.after), [0] * w.rank
    x, sizes = w.x, w.sizes
    if not inside:
        front, behind = list(zeros), list(zeros)
        for k in dilated:
            front[k], d = w.before[k], w.dilations[k]
            behind[k] = w.after[k] + -(w.sizes[k] + w.before[k] + w.after[k]) % d
        x = writer.padded(x, front, behind)
        sizes = tuple(n + f + b for n, f, b in zip(sizes, front, behind, strict=True))
    for k in dilated:
        before[k], after[k] = (w.before[k] // w.dilations[k], w.after[k] // w.dilations[k]) if inside else (0, 0)
    plain = w.changed(before=before, after=after, dilations=[1] * w.rank)
    phases = [w.dilations[k] for k in dilated]
    small = [n // d for n, d in zip(sizes, w.dilations, strict=True)]
    x = _apart(writer, found, x, small, dilated)
    x = writer.put(f"Reshape({x}, shape={listing([product(*phases, found.batch), found.channels, *small])})")
    y = writer.put(plain.call(x))
    rows = [(n + b + a - k) // s + 1 for n, b, a, k, s in zip(small, before, after, w.kernel, w.strides, strict=True)]
    y = writer.put(f"Reshape({y}, shape={listing([*phases, found.batch, found.filters, *rows])})")
    return _together(writer, found, y, rows, dilated)


def _apart(writer: Writer, found: Single, x: str, small: list[int], dilated: list[int]) -> str:
    """Axes of size d·m as m and d, and all the d in front."""
    w = found.window
    parts: list[object] = [found.batch, found.channels]
    phases: list[int] = []
    for k in range(w.rank):
        parts.append(small[k])
        if k in dilated:
            phases.append(len(parts))
            parts.append(w.dilations[k])
    x = writer.put(f"Reshape({x}, shape={listing(parts)})")
    return writer.put(f"Transpose({x}, perm={[*phases, *(k for k in range(len(parts)) if k not in phases)]})")


def _together(writer: Writer, found: Single, y: str, rows: list[int], dilated: list[int]) -> list[str]:
    w = found.window
    order = [len(dilated), len(dilated) + 1]
    for k in range(w.rank):
        order.append(len(dilated) + 2 + k)
        if k in dilated:
            order.append(dilated.index(k))
    y = writer.put(f"Transpose({y}, perm={order})")
    full = [m * d for m, d in zip(rows, w.dilations, strict=True)]
    whole = tuple(full) == w.outputs
    y = writer.put(f"Reshape({y}, shape={listing([found.batch, found.filters, *full])})", w.target if whole else None)
    if not whole:
        ranges = [None if n == m else (0, m) for n, m in zip(full, w.outputs, strict=True)]
        writer.cut(y, (None, None, *ranges), w.target)
    return writer.lines
