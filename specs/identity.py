"""Identity: x."""

from superopt.ops.draws import unary, whole
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Identity", since=1, elements="any", draw=whole(unary))
def identity(x: Tensor) -> Tensor:
    return elementwise(lambda e: e, x)
