"""IsNaN: whether an element is no number. No real one is; rules that ask are also tried on some that are none."""

from typing import Any

import numpy as np

from superopt.ops.draws import shape
from superopt.ops.element import call
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return Draw((shape(rng),), values=lambda rng, shape: np.where(rng.random(shape) < 0.3, np.nan, rng.random(shape)))


@operator("IsNaN", since=9, draw=draw)
def is_nan(x: Tensor) -> Tensor:
    return elementwise(lambda e: call("isnan", e), x)
