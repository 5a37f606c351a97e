"""com.microsoft FastGelu: Gelu by tanh of x plus, where given, a bias along the last axis."""

from typing import Any

from specs._activation import gelu_by_tanh
from specs._bias import biased
from superopt.ops.draws import shape
from superopt.ops.formula import Tensor, elementwise
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = shape(rng, 1, 4)
    return Draw((x, x[-1:]) if rng.random() < 0.6 else (x,))


@operator("FastGelu", domain="com.microsoft", since=1, draw=draw)
def fast_gelu(x: Tensor, bias: Tensor | None = None) -> Tensor:
    return elementwise(gelu_by_tanh, x if bias is None else biased(x, bias))
