"""HardSigmoid: max(0, min(1, α·x + β))."""

from typing import Any

from specs._activation import hard_sigmoid, unknown_reals
from superopt.ops.draws import shape
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    arguments = {"alpha": rng.uniform(-1, 1), "beta": rng.uniform(-1, 1)} if rng.random() < 0.7 else {}
    return Draw((shape(rng),), arguments, values=lambda rng, shape: 3 * rng.standard_normal(shape))


@operator("HardSigmoid", since=6, draw=draw, unknown=unknown_reals("alpha", "beta"))
def hard_logistic(x: Tensor, *, alpha: Operand = 0.2, beta: Operand = 0.5) -> Tensor:
    return elementwise(lambda e: hard_sigmoid(e, alpha, beta), x)
