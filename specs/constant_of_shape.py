"""ConstantOfShape: one number at every element of a shape."""

from typing import Any

import numpy as np

from superopt.ops.draws import shape
from superopt.ops.element import Element, lift
from superopt.ops.formula import Static, Tensor, require, tensor
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    value = {"value": np.array([rng.integers(-3, 4)], np.float32)} if rng.random() < 0.7 else {}
    return Draw((), {"input": list(shape(rng, 0, 4)), **value})


@operator("ConstantOfShape", since=9, elements="any", draw=draw)
def constant_of_shape(input: Static, *, value: Any = 0) -> Tensor:
    """`value` is a number, or an array of one."""
    for n in input:
        require(n >= 0, "a size is not negative")
    number = value if isinstance(value, int | float | Element) else np.asarray(value).item()
    return tensor(tuple(input), lambda *_: lift(number))
