"""ThresholdedRelu: x where x > α, 0 elsewhere."""

from typing import Any

from specs._activation import unknown_reals
from superopt.ops.draws import shape
from superopt.ops.element import Operand, call
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return Draw((shape(rng),), {"alpha": rng.uniform(-1, 1)} if rng.random() < 0.8 else {})


@operator("ThresholdedRelu", since=10, draw=draw, unknown=unknown_reals("alpha"))
def thresholded_relu(x: Tensor, *, alpha: Operand = 1.0) -> Tensor:
    return elementwise(lambda e: e * call("step", e - alpha), x)
