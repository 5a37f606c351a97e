"""Clip: min(max(x, low), high); where the bounds cross, the upper one wins. A bound that is not given does not bind."""

from typing import Any

from specs._activation import unknown_reals
from superopt.ops.draws import pick, shape
from superopt.ops.element import Element, Operand, maximum, minimum
from superopt.ops.formula import Tensor, elementwise, require
from superopt.ops.registry import Draw, operator

LARGEST = 3.4028234663852886e38
"""The largest float32: the attributes' default, which leaves every float32 as it is."""


def clipped(x: Element, low: Operand | None, high: Operand | None) -> Element:
    raised = x if low is None else maximum(x, low)
    return raised if high is None else minimum(raised, high)


def draw_attributes(rng: Any) -> Draw:
    low, high = sorted(rng.standard_normal(2))  # the runtime refuses attributes that cross
    arguments = {name: value for name, value in (("min", low), ("max", high)) if rng.random() < 0.7}
    return Draw((shape(rng),), arguments)


@operator("Clip", since=6, until=10, draw=draw_attributes, unknown=unknown_reals("min", "max"))
def clip_by_attributes(x: Tensor, *, min: Operand = -LARGEST, max: Operand = LARGEST) -> Tensor:
    low = None if isinstance(min, float) and min <= -LARGEST else min
    high = None if isinstance(max, float) and max >= LARGEST else max
    return elementwise(lambda e: clipped(e, low, high), x)


def draw(rng: Any) -> Draw:
    bounds = pick(rng, (), ((),), ((), ()), ((), ()), (None, ()))
    known = {
        k + 1: pick(rng, -1.0, 0.0, 0.5, 6.0) for k, s in enumerate(bounds) if s is not None and rng.random() < 0.4
    }
    return Draw((shape(rng), *bounds), known=known)


@operator("Clip", since=11, draw=draw)
def clip(x: Tensor, min: Tensor | None = None, max: Tensor | None = None) -> Tensor:
    for bound in (min, max):
        require(bound is None or bound.rank == 0, "a bound is a scalar")
    return elementwise(lambda e: clipped(e, None if min is None else min[()], None if max is None else max[()]), x)
