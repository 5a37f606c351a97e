"""Where: elements of x where the condition holds, of y elsewhere; all three broadcast."""

from typing import Any

from superopt.ops.draws import broadcasting
from superopt.ops.element import choose
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return Draw(broadcasting(3)(rng).shapes, values=(lambda rng, shape: rng.random(shape) < 0.5, None, None))


@operator("Where", since=9, elements="any", draw=draw)
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return elementwise(choose, condition, x, y)
