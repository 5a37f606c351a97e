"""Sign: 1 where x > 0, −1 where x < 0, 0 where x = 0."""

from typing import Any

from superopt.ops.draws import shape
from superopt.ops.element import call
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return Draw((shape(rng),), values=lambda rng, shape: rng.integers(-2, 3, shape) / 2)


@operator("Sign", since=9, draw=draw)
def sign(x: Tensor) -> Tensor:
    return elementwise(lambda e: call("step", e) - call("step", -e), x)
