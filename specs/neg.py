"""Neg: −x."""

from superopt.ops.draws import unary, whole
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Neg", since=6, elements="any", draw=whole(unary))
def negative(x: Tensor) -> Tensor:
    return elementwise(lambda e: -e, x)
