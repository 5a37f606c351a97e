"""com.microsoft BiasGelu: Gelu of a + b, where b is a bias along the last axis."""

from typing import Any

from specs._activation import gelu
from specs._bias import biased
from superopt.ops.draws import shape
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    a = shape(rng, 1, 4)
    return Draw((a, a[-1:]))


@operator("BiasGelu", domain="com.microsoft", since=1, draw=draw)
def bias_gelu(a: Tensor, b: Tensor) -> Tensor:
    return elementwise(gelu, biased(a, b))
