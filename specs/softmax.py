"""Softmax: e^x over the sum of e^x along an axis. (The runtime subtracts the maximum: over the reals, the same.)"""

from specs._softmax import draw_softmax, share
from superopt.ops.formula import Tensor, normal_axis, tensor
from superopt.ops.registry import operator


@operator("Softmax", since=13, draw=draw_softmax)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    k = normal_axis(axis, x.rank)
    return tensor(x.shape, lambda *i: share(x, i, k, k))


@operator("Softmax", since=1, until=12, draw=draw_softmax)
def softmax_of_matrix(x: Tensor, *, axis: int = 1) -> Tensor:
    """The input counts as a matrix, whose columns are all axes from `axis` on."""
    k = normal_axis(axis, x.rank)
    return tensor(x.shape, lambda *i: share(x, i, k, x.rank - 1))
