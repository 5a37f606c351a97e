"""e^x over the sum of e^x, along one axis or several."""

from __future__ import annotations

from typing import Any

from specs._reduce import sum_all
from superopt.ops.draws import axis as draw_axis
from superopt.ops.draws import shape
from superopt.ops.element import Element, call
from superopt.ops.formula import Tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw


def draw_softmax(rng: Any) -> Draw:
    x = shape(rng, 1, 4, empty=False)
    return Draw((x,), {"axis": draw_axis(rng, len(x))} if rng.random() < 0.9 or len(x) < 2 else {})


def share(x: Tensor, i: tuple[Index, ...], first: int, last: int) -> Element:
    """e^x[i] over the sum of e^x along the axes from the first to the last."""

    def exp(*j: Index) -> Element:
        return call("exp", x[*i[:first], *j, *i[last + 1 :]])

    return call("exp", x[i]) / sum_all(x.shape[first : last + 1], exp)
