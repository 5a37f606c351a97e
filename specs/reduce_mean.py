"""ReduceMean: the sum over axes, divided by their number of elements."""

from specs._reduce import draw_reduction_of_something, mean_all, reduced
from superopt.ops.formula import Static, Tensor
from superopt.ops.registry import operator


@operator("ReduceMean", since=1, draw=draw_reduction_of_something)
def reduce_mean(data: Tensor, axes: Static = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    return reduced(data, axes, keepdims, noop_with_empty_axes, mean_all)
