"""LeakyRelu: x where x ≥ 0, α·x where x < 0."""

from typing import Any

from specs._activation import leaky_relu, unknown_reals
from superopt.ops.draws import shape
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return Draw((shape(rng),), {"alpha": rng.uniform(-1, 2)} if rng.random() < 0.8 else {})


@operator("LeakyRelu", since=6, draw=draw, unknown=unknown_reals("alpha"))
def leaky_rectified(x: Tensor, *, alpha: Operand = 0.01) -> Tensor:
    return elementwise(lambda e: leaky_relu(e, alpha), x)
