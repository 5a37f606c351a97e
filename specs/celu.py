"""Celu: max(0, x) + min(0, α·(e^(x/α) − 1))."""

from typing import Any

from specs._activation import unknown_reals
from superopt.ops.draws import shape
from superopt.ops.element import Operand, call, maximum, minimum
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return Draw((shape(rng),), {"alpha": rng.uniform(0.5, 2)} if rng.random() < 0.8 else {})


@operator("Celu", since=12, draw=draw, unknown=unknown_reals("alpha"))
def celu(x: Tensor, *, alpha: Operand = 1.0) -> Tensor:
    return elementwise(lambda e: maximum(e, 0) + minimum((call("exp", e / alpha) - 1) * alpha, 0), x)
