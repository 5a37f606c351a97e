"""Mul: elementwise product, broadcast."""

from superopt.ops.draws import broadcasting, whole
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Mul", since=7, elements="any", commutative=True, draw=whole(broadcasting(2)))
def multiply(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x * y, a, b)
