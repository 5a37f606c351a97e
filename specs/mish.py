"""Mish: x · tanh(softplus(x))."""

from specs._activation import softplus
from superopt.ops.draws import unary
from superopt.ops.element import call
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Mish", since=18, draw=unary)
def mish(x: Tensor) -> Tensor:
    return elementwise(lambda e: e * call("tanh", softplus(e)), x)
