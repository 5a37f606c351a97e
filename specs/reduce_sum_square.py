"""ReduceSumSquare: the sum of squares over axes."""

from specs._reduce import Body, Sizes, draw_reduction, reduced, sum_all
from superopt.ops.draws import whole
from superopt.ops.element import Element
from superopt.ops.formula import Static, Tensor
from superopt.ops.registry import operator


@operator("ReduceSumSquare", since=1, elements="any", draw=whole(draw_reduction))
def reduce_sum_square(data: Tensor, axes: Static = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    def value(sizes: Sizes, x: Body) -> Element:
        return sum_all(sizes, lambda *j: x(*j) ** 2)

    return reduced(data, axes, keepdims, noop_with_empty_axes, value)
