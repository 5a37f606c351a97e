"""Abs: |x|."""

from superopt.ops.draws import unary
from superopt.ops.element import call
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Abs", since=6, draw=unary)
def absolute(x: Tensor) -> Tensor:
    return elementwise(lambda e: call("abs", e), x)
