"""Relu: max(x, 0)."""

from superopt.ops.draws import unary
from superopt.ops.element import maximum
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Relu", since=6, draw=unary)
def relu(x: Tensor) -> Tensor:
    return elementwise(lambda e: maximum(e, 0), x)
