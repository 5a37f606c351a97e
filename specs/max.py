"""Max: elementwise maximum of any number of operands, broadcast."""

from functools import reduce

from specs._variadic import draw
from superopt.ops.element import maximum
from superopt.ops.formula import Tensor, elementwise, require
from superopt.ops.registry import operator


@operator("Max", since=8, commutative=True, draw=draw)
def largest(*xs: Tensor) -> Tensor:
    require(len(xs) >= 1, "no operand")
    return elementwise(lambda *e: reduce(maximum, e), *xs)
