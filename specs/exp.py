"""Exp: e^x."""

from superopt.ops.draws import unary
from superopt.ops.element import call
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Exp", since=6, draw=unary)
def exponential(x: Tensor) -> Tensor:
    return elementwise(lambda e: call("exp", e), x)
