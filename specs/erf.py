"""Erf: the error function."""

from superopt.ops.draws import unary
from superopt.ops.element import call
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Erf", since=9, draw=unary)
def error_function(x: Tensor) -> Tensor:
    return elementwise(lambda e: call("erf", e), x)
