"""Programs that are one convolution of an input: what most families start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from superopt.partial.program import Mutant, Original, Shape
from superopt.partial.window import Window, windows


@dataclass(frozen=True)
class Single:
    """y = Conv(x, k, b), with its sizes as the program writes them."""

    original: Original
    window: Window
    batch: str
    channels: str
    filters: str
    per_group: str

    def mutant(self, family: str, lines: Sequence[str], doc: str) -> Mutant:
        return Mutant(family, self.original, self.original.rule(lines, doc))


def single(original: Original, shapes: Mapping[str, Shape]) -> Single | None:
    """The program as one convolution; None where it is anything else."""
    found = windows(original, shapes)
    inputs = {g.name for g in original.given}
    if len(original.steps) != 1 or len(found) != 1:
        return None
    (window,) = found.values()
    if not {window.x, window.k} <= inputs:
        return None
    x, k = original.dims(window.x), original.dims(window.k)
    return Single(original, window, str(x[0]), str(x[1]), str(k[0]), str(k[1]))
