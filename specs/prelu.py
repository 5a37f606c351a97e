"""PRelu: x where x ≥ 0, slope·x where x < 0; the slope broadcasts to x, not x to the slope."""

from typing import Any

from specs._activation import leaky_relu
from superopt.ops.draws import shape
from superopt.ops.formula import Tensor, broadcast, require, tensor
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = shape(rng, 0, 4)
    return Draw((x, tuple(1 if rng.random() < 0.4 else n for n in x)[int(rng.integers(len(x) + 1)) :]))


@operator("PRelu", since=7, draw=draw)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    require(slope.rank <= x.rank, "the slope has more axes than the input")
    for k in range(1, slope.rank + 1):
        require((slope.shape[-k] == 1) | (slope.shape[-k] == x.shape[-k]), "the slope does not broadcast to the input")
    slopes = broadcast(slope, x.shape)
    return tensor(x.shape, lambda *i: leaky_relu(x[i], slopes[i]))
