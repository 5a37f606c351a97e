"""Elu: x where x ≥ 0, α·(e^x − 1) where x < 0."""

from typing import Any

from specs._activation import elu, unknown_reals
from superopt.ops.draws import shape
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return Draw((shape(rng),), {"alpha": rng.uniform(-1, 2)} if rng.random() < 0.8 else {})


@operator("Elu", since=6, draw=draw, unknown=unknown_reals("alpha"))
def exponential_linear(x: Tensor, *, alpha: Operand = 1.0) -> Tensor:
    return elementwise(lambda e: elu(e, alpha), x)
