"""Pow: x to the power y, broadcast; whole powers and square roots are products and roots where y is a known number."""

from typing import Any

from superopt.ops.draws import broadcasting, pick, shape
from superopt.ops.element import power
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def positive(rng: Any, shape: tuple[int, ...]) -> Any:
    return rng.uniform(0.2, 3, shape)


def draw(rng: Any) -> Draw:
    if rng.random() < 0.4:
        return Draw(broadcasting(2)(rng).shapes, values=(positive, None))
    x, y = shape(rng), pick(rng, (), (), (1,))
    if rng.random() < 0.6:
        return Draw((x, y), known={1: pick(rng, 0, 1, 2, 3, 4, 5, -1, -2, -3)})
    return Draw((x, y), values=positive, known={1: pick(rng, 0.5, -0.5, 1.5, 0.3, -1.7)})


@operator("Pow", since=7, draw=draw)
def to_the_power(x: Tensor, y: Tensor) -> Tensor:
    return elementwise(power, x, y)
