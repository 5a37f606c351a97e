"""ReduceLogSum: log of the sum over axes."""

from typing import Any

from specs._reduce import Body, Sizes, draw_reduction_of_something, reduced, sum_all
from superopt.ops.element import Element, call
from superopt.ops.formula import Static, Tensor
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    drawn = draw_reduction_of_something(rng)
    return Draw(drawn.shapes, drawn.arguments, values=lambda rng, shape: rng.uniform(0.1, 3, shape))


@operator("ReduceLogSum", since=1, draw=draw)
def reduce_log_sum(data: Tensor, axes: Static = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    def value(sizes: Sizes, x: Body) -> Element:
        return call("log", sum_all(sizes, x))

    return reduced(data, axes, keepdims, noop_with_empty_axes, value)
