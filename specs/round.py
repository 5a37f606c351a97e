"""Round: the nearest integer; of two, the even one."""

from typing import Any

from superopt.ops.draws import shape
from superopt.ops.element import call
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return Draw((shape(rng),), values=lambda rng, shape: rng.integers(-9, 10, shape) / 2)


@operator("Round", since=11, draw=draw)
def rounded(x: Tensor) -> Tensor:
    return elementwise(lambda e: call("round", e), x)
