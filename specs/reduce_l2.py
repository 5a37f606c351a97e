"""ReduceL2: the root of the sum of squares over axes."""

from specs._reduce import Body, Sizes, draw_reduction, reduced, sum_all
from superopt.ops.element import Element, call
from superopt.ops.formula import Static, Tensor
from superopt.ops.registry import operator


@operator("ReduceL2", since=1, draw=draw_reduction)
def reduce_l2(data: Tensor, axes: Static = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    def value(sizes: Sizes, x: Body) -> Element:
        return call("sqrt", sum_all(sizes, lambda *j: x(*j) ** 2))

    return reduced(data, axes, keepdims, noop_with_empty_axes, value)
