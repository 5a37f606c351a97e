"""ReduceProd: the product over axes; over nothing, 1."""

from specs._reduce import draw_reduction, product_all, reduced
from superopt.ops.formula import Static, Tensor
from superopt.ops.registry import operator


@operator("ReduceProd", since=1, elements="any", draw=draw_reduction)
def reduce_prod(data: Tensor, axes: Static = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0) -> Tensor:
    return reduced(data, axes, keepdims, noop_with_empty_axes, product_all)
