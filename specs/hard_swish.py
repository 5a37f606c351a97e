"""HardSwish: x · HardSigmoid(x) with α = 1/6 and β = 1/2."""

from fractions import Fraction
from typing import Any

from specs._activation import hard_sigmoid
from superopt.ops.draws import shape
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return Draw((shape(rng),), values=lambda rng, shape: 4 * rng.standard_normal(shape))


@operator("HardSwish", since=14, draw=draw)
def hard_swish(x: Tensor) -> Tensor:
    return elementwise(lambda e: e * hard_sigmoid(e, Fraction(1, 6), Fraction(1, 2)), x)
