"""Selu: γ·x where x > 0, γ·(α·e^x − α) elsewhere."""

from typing import Any

from specs._activation import elu, unknown_reals
from superopt.ops.draws import shape
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    arguments = {"alpha": rng.uniform(0, 2), "gamma": rng.uniform(0.5, 2)} if rng.random() < 0.7 else {}
    return Draw((shape(rng),), arguments)


@operator("Selu", since=6, draw=draw, unknown=unknown_reals("alpha", "gamma"))
def selu(
    x: Tensor, *, alpha: Operand = 1.67326319217681884765625, gamma: Operand = 1.05070102214813232421875
) -> Tensor:
    return elementwise(lambda e: elu(e, alpha) * gamma, x)
