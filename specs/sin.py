"""Sin: the sine."""

from superopt.ops.draws import unary
from superopt.ops.element import call
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Sin", since=7, draw=unary)
def sine(x: Tensor) -> Tensor:
    return elementwise(lambda e: call("sin", e), x)
