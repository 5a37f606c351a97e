"""LogSoftmax: log of e^x over the sum of e^x along an axis."""

from specs._softmax import draw_softmax, share
from superopt.ops.element import call
from superopt.ops.formula import Tensor, normal_axis, tensor
from superopt.ops.registry import operator


@operator("LogSoftmax", since=13, draw=draw_softmax)
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    k = normal_axis(axis, x.rank)
    return tensor(x.shape, lambda *i: call("log", share(x, i, k, k)))


@operator("LogSoftmax", since=1, until=12, draw=draw_softmax)
def log_softmax_of_matrix(x: Tensor, *, axis: int = 1) -> Tensor:
    """The input counts as a matrix, whose columns are all axes from `axis` on."""
    k = normal_axis(axis, x.rank)
    return tensor(x.shape, lambda *i: call("log", share(x, i, k, x.rank - 1)))
