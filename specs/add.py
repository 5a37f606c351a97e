"""Add: elementwise sum, broadcast."""

from superopt.ops.draws import broadcasting
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Add", since=7, elements="any", commutative=True, draw=broadcasting(2))
def add(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x + y, a, b)
