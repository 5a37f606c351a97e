"""ReduceSum: the sum over axes; over nothing, 0."""

from specs._reduce import draw_reduction, reduced, sum_all
from superopt.ops.draws import whole
from superopt.ops.formula import Static, Tensor
from superopt.ops.registry import operator


@operator("ReduceSum", since=1, elements="any", draw=whole(draw_reduction))
def reduce_sum(data: Tensor, axes: Static = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    return reduced(data, axes, keepdims, noop_with_empty_axes, sum_all)
