"""ReduceL1: the sum of absolute values over axes."""

from specs._reduce import Body, Sizes, draw_reduction, reduced, sum_all
from superopt.ops.element import Element, call
from superopt.ops.formula import Static, Tensor
from superopt.ops.registry import operator


@operator("ReduceL1", since=1, draw=draw_reduction)
def reduce_l1(data: Tensor, axes: Static = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    def value(sizes: Sizes, x: Body) -> Element:
        return sum_all(sizes, lambda *j: call("abs", x(*j)))

    return reduced(data, axes, keepdims, noop_with_empty_axes, value)
