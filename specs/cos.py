"""Cos: the cosine."""

from superopt.ops.draws import unary
from superopt.ops.element import call
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Cos", since=7, draw=unary)
def cosine(x: Tensor) -> Tensor:
    return elementwise(lambda e: call("cos", e), x)
