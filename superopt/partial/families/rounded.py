"""Odd sizes filled up with zeros to a multiple that kernels like, and the result cut back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from superopt.ops.registry import Registry
from superopt.partial.families.single import single
from superopt.partial.program import Mutant, Original, Shape
from superopt.partial.writing import Writer

MULTIPLES = (2, 4, 8)


def rounded(original: Original, shapes: Mapping[str, Shape], _: Registry) -> Iterator[Mutant]:
    found = single(original, shapes)
    if found is None:
        return
    w = found.window
    for multiple in MULTIPLES:
        extra = [-n % multiple for n in w.sizes]
        if not any(extra):
            continue
        writer = Writer(original.names)
        x = writer.padded(w.x, [0] * w.rank, extra)
        after = [max(0, a - e) for a, e in zip(w.after, extra, strict=True)]
        y = writer.put(w.changed(after=after).call(x))
        writer.cut(y, (None, None, *((0, m) for m in w.outputs)), w.target)
        yield found.mutant("rounded", writer.lines, f"Sizes filled up to multiples of {multiple}.")
