"""CumSum: at each place of an axis, the sum of the elements up to it; without it, or from the end, on demand."""

from typing import Any

from superopt.ops.draws import axis as draw_axis
from superopt.ops.draws import shape, whole
from superopt.ops.element import Element, select, sum_over
from superopt.ops.formula import Static, Tensor, normal_axis, replaced, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


@whole
def draw(rng: Any) -> Draw:
    x = shape(rng, 1, 4)
    switches = {name: int(rng.integers(2)) for name in ("exclusive", "reverse") if rng.random() < 0.7}
    return Draw((x,), {"axis": draw_axis(rng, len(x)), **switches})


@operator("CumSum", since=11, elements="any", draw=draw)
def cum_sum(x: Tensor, axis: Static, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
    k = normal_axis(axis, x.rank)

    def at(*i: Index) -> Element:
        def term(j: Index) -> Element:
            last, first = (j, i[k]) if reverse else (i[k], j)
            return select(last >= first + exclusive, x[replaced(i, k, j)], 0)

        return sum_over(x.shape[k], term)

    return tensor(x.shape, at)
