"""GlobalAveragePool: the mean of each channel over all spatial axes."""

from typing import Any

from specs._reduce import mean_all
from superopt.ops.draws import shape
from superopt.ops.formula import Tensor, require, tensor
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    images = 0 if rng.random() < 0.05 else 2
    return Draw(((images, *shape(rng, 2, 4, empty=False)),))


@operator("GlobalAveragePool", since=1, draw=draw)
def global_average_pool(x: Tensor) -> Tensor:
    require(x.rank >= 3, "pooling has at least one spatial axis")
    return tensor(
        (*x.shape[:2], *(1 for _ in x.shape[2:])),
        lambda n, c, *_: mean_all(x.shape[2:], lambda *j: x[n, c, *j]),
    )
