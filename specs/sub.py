"""Sub: elementwise difference, broadcast."""

from superopt.ops.draws import broadcasting, whole
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Sub", since=7, elements="any", draw=whole(broadcasting(2)))
def subtract(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(lambda x, y: x - y, a, b)
