"""Softmax: e^x over the sum of e^x along an axis. (The runtime subtracts the maximum: over the reals, the same.)"""

from typing import Any

from superopt.ops.draws import axis as draw_axis
from superopt.ops.draws import shape
from superopt.ops.element import call, sum_over
from superopt.ops.formula import Tensor, normal_axis, replaced, tensor
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = shape(rng, 1, 4, empty=False)
    return Draw((x,), {"axis": draw_axis(rng, len(x))})


@operator("Softmax", since=13, draw=draw)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    k = normal_axis(axis, x.rank)
    return tensor(
        x.shape,
        lambda *i: call("exp", x[i]) / sum_over(x.shape[k], lambda j: call("exp", x[replaced(i, k, j)])),
    )
