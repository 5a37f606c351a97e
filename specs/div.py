"""Div: elementwise quotient, broadcast. (Of integers it is another function: toward zero.)"""

from superopt.ops.draws import broadcasting
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Div", since=7, draw=broadcasting(2))
def divide(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x / y, a, b)
