"""com.microsoft Gelu: x/2 · (1 + erf(x/√2)); for models of an opset that has no Gelu of its own."""

from specs import _activation
from superopt.ops.draws import unary
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Gelu", domain="com.microsoft", since=1, draw=unary)
def gelu(x: Tensor) -> Tensor:
    return elementwise(_activation.gelu, x)
