"""Reciprocal: 1 / x."""

from superopt.ops.draws import unary
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Reciprocal", since=6, draw=unary)
def reciprocal(x: Tensor) -> Tensor:
    return elementwise(lambda e: 1 / e, x)
