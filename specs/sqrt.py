"""Sqrt: the square root."""

from typing import Any

from superopt.ops.draws import shape
from superopt.ops.element import call
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return Draw((shape(rng),), values=lambda rng, shape: rng.uniform(0.01, 9, shape))


@operator("Sqrt", since=6, draw=draw)
def square_root(x: Tensor) -> Tensor:
    return elementwise(lambda e: call("sqrt", e), x)
