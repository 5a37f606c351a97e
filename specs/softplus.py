"""Softplus: ln(1 + e^x)."""

from specs import _activation
from superopt.ops.draws import unary
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Softplus", since=1, draw=unary)
def softplus(x: Tensor) -> Tensor:
    return elementwise(_activation.softplus, x)
