"""Min: elementwise minimum of any number of operands, broadcast."""

from functools import reduce

from specs._variadic import draw
from superopt.ops.element import minimum
from superopt.ops.formula import Tensor, elementwise, require
from superopt.ops.registry import operator


@operator("Min", since=8, commutative=True, draw=draw)
def smallest(*xs: Tensor) -> Tensor:
    require(len(xs) >= 1, "no operand")
    return elementwise(lambda *e: reduce(minimum, e), *xs)
