"""Outputs that a model draws at random: compared by what repeated draws have in common.

onnxruntime seeds a random node once per session, and alike in every session of a process. So two fresh sessions agree
and show nothing; a second run of the same session is what differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from superopt.check.leaves import kind_of, leaves
from superopt.ir.tensor import Array
from superopt.runtime.values import Value

DRAWS = 8


@dataclass(frozen=True)
class Draw:
    """One random output, summed up."""

    form: tuple[tuple[str, str, tuple[int, ...]], ...]
    """Path, element type and shape of each leaf."""
    means: tuple[float, ...]
    spreads: tuple[float, ...]


def summed_up(value: Value) -> Draw:
    arrays = leaves(value)
    numbers = [_numbers(a) for a in arrays.values()]
    return Draw(
        tuple((path, kind_of(a), a.shape) for path, a in arrays.items()),
        tuple(float(n.mean()) if n.size else 0.0 for n in numbers),
        tuple(float(n.std()) if n.size else 0.0 for n in numbers),
    )


def unlike(own: Sequence[Draw], found: Sequence[Draw]) -> str:
    """How the candidate's draws differ in kind from the original's; empty when they do not.

    Its average mean and spread must lie where the original's own draws lie, give or take the width of that range.
    """
    types = {tuple(entry[:2] for entry in draw.form) for draw in own}
    for draw in found:
        if tuple(entry[:2] for entry in draw.form) not in types:
            return "its element types differ"
    shapes = {draw.form for draw in own}
    if len(shapes) > 1:
        return ""  # the shape itself is random
    if any(draw.form not in shapes for draw in found):
        return f"its shape is {_shapes(found[0])}, expected {_shapes(own[0])}"
    for what, pick in (("mean", lambda d: d.means), ("standard deviation", lambda d: d.spreads)):
        for i in range(len(own[0].form)):
            values = [pick(draw)[i] for draw in own]
            mine = float(np.mean([pick(draw)[i] for draw in found]))
            low, high = min(values), max(values)
            slack = (high - low) + 1e-5 * max(abs(low), abs(high))
            if not low - slack <= mine <= high + slack:
                return f"its {what} is {mine:.3g} over {len(found)} draws, the original's {low:.3g} to {high:.3g}"
    return ""


def _numbers(array: Array) -> Array:
    if array.dtype.kind == "O":
        return np.zeros(0)
    numbers = np.abs(array) if array.dtype.kind == "c" else array.astype(np.float64)
    return numbers[np.isfinite(numbers)]


def _shapes(draw: Draw) -> str:
    return ", ".join(str(list(shape)) for _, _, shape in draw.form)
