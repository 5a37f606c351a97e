"""Sum: elementwise sum of any number of operands, broadcast."""

from functools import reduce

from specs._variadic import draw
from superopt.ops.element import add
from superopt.ops.formula import Tensor, elementwise, require
from superopt.ops.registry import operator


@operator("Sum", since=8, commutative=True, elements="any", draw=draw)
def total(*xs: Tensor) -> Tensor:
    require(len(xs) >= 1, "no operand")
    return elementwise(lambda *e: reduce(add, e), *xs)
