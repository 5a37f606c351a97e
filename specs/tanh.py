"""Tanh: the hyperbolic tangent."""

from superopt.ops.draws import unary
from superopt.ops.element import call
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Tanh", since=6, draw=unary)
def hyperbolic_tangent(x: Tensor) -> Tensor:
    return elementwise(lambda e: call("tanh", e), x)
