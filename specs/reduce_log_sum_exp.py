"""ReduceLogSumExp: log of the sum of e^x over axes. (The runtime subtracts the maximum: over the reals, the same.)"""

from specs._reduce import Body, Sizes, draw_reduction_of_something, reduced, sum_all
from superopt.ops.element import Element, call
from superopt.ops.formula import Static, Tensor
from superopt.ops.registry import operator


@operator("ReduceLogSumExp", since=1, draw=draw_reduction_of_something)
def reduce_log_sum_exp(
    data: Tensor, axes: Static = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
) -> Tensor:
    def value(sizes: Sizes, x: Body) -> Element:
        return call("log", sum_all(sizes, lambda *j: call("exp", x(*j))))

    return reduced(data, axes, keepdims, noop_with_empty_axes, value)
