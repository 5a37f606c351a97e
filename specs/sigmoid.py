"""Sigmoid: 1 / (1 + e^−x)."""

from specs import _activation
from superopt.ops.draws import unary
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import operator


@operator("Sigmoid", since=6, draw=unary)
def sigmoid(x: Tensor) -> Tensor:
    return elementwise(_activation.sigmoid, x)
