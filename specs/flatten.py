"""Flatten: a matrix, with the axes before one merged into rows and the others into columns."""

from typing import Any

from superopt.ops.draws import shape, size
from superopt.ops.formula import Tensor, require, reshaped
from superopt.ops.index import product
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = shape(rng, 0, 4)
    axis = size(rng, -len(x), len(x))
    return Draw((x,), {"axis": axis} if axis != 1 else {})


@operator("Flatten", since=1, elements="any", draw=draw)
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    require(-x.rank <= axis <= x.rank, f"axis {axis} outside a tensor of rank {x.rank}")
    k = axis if axis >= 0 else axis + x.rank
    return reshaped(x, (product(x.shape[:k]), product(x.shape[k:])))
