"""com.microsoft BiasAdd: an image [N, H·W, C], plus a bias for each channel, plus a residual image.

There is a kernel for CUDA alone, once for 320, 640 or 1280 channels; onnxruntime 1.31 takes others as well.
"""

from typing import Any

from superopt.ops.draws import pick, size
from superopt.ops.formula import Tensor, require, tensor
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    channels = pick(rng, 320, 640, 1280)
    image = (size(rng, 1, 3), size(rng, 1, 6), channels)
    return Draw((image, (channels,), image))


@operator("BiasAdd", domain="com.microsoft", since=1, elements="any", runs_on="cuda", draw=draw)
def bias_add(x: Tensor, bias: Tensor, skip: Tensor) -> Tensor:
    require(x.rank == 3, "an image has the axes N, H·W and C")
    require(bias.rank == 1, "a bias has one axis")
    require(bias.shape[0] == x.shape[2], "one bias for each channel")
    require(skip.rank == 3, "the residual has the image's axes")
    for axis in range(3):
        require(skip.shape[axis] == x.shape[axis], f"image and residual differ in axis {axis}")
    return tensor(x.shape, lambda n, s, c: x[n, s, c] + bias[c] + skip[n, s, c])
