"""ReduceMax: the largest element over axes; over nothing, −∞."""

from specs._reduce import draw_reduction_of_something, max_all, reduced
from superopt.ops.draws import whole
from superopt.ops.formula import Static, Tensor
from superopt.ops.registry import operator


@operator("ReduceMax", since=1, draw=whole(draw_reduction_of_something))
def reduce_max(data: Tensor, axes: Static = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    return reduced(data, axes, keepdims, noop_with_empty_axes, max_all)
