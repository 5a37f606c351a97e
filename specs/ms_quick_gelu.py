"""com.microsoft QuickGelu: x · sigmoid(α·x)."""

from typing import Any

from specs._activation import sigmoid, unknown_reals
from superopt.ops.draws import shape
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return Draw((shape(rng),), {"alpha": rng.uniform(-2, 2)} if rng.random() < 0.8 else {})


@operator("QuickGelu", domain="com.microsoft", since=1, draw=draw, unknown=unknown_reals("alpha"))
def quick_gelu(x: Tensor, *, alpha: Operand = 1.702) -> Tensor:
    return elementwise(lambda e: e * sigmoid(e * alpha), x)
