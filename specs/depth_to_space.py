"""DepthToSpace: channels spread over blocks of pixels; a block's pixels come first (DCR) or last (CRD) in a channel."""

from collections.abc import Iterator
from typing import Any

from superopt.ops.draws import pick, size
from superopt.ops.element import Element
from superopt.ops.formula import Tensor, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    block = size(rng, 1, 3)
    x = (size(rng, 1, 2), block * block * size(rng, 1, 3), size(rng, 1, 4), size(rng, 1, 4))
    return Draw((x,), {"blocksize": block, **pick(rng, {}, {"mode": "DCR"}, {"mode": "CRD"})})


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for mode in ("DCR", "CRD"):
        yield {"blocksize": symbols.positive("blocksize"), "mode": mode}


@operator("DepthToSpace", since=1, elements="any", draw=draw, unknown=unknown)
def depth_to_space(x: Tensor, *, blocksize: Index, mode: str = "DCR") -> Tensor:
    require(x.rank == 4, "an image has four axes")
    require(mode in ("DCR", "CRD"), f"mode {mode} is none of ONNX")
    n, c, h, w = x.shape
    require(blocksize >= 1, "a block is not empty")
    require(c % (blocksize * blocksize) == 0, "the blocks do not divide the channels")
    depth = c // (blocksize * blocksize)

    def at(image: Index, channel: Index, row: Index, column: Index) -> Element:
        pixel = row % blocksize * blocksize + column % blocksize
        source = pixel * depth + channel if mode == "DCR" else channel * blocksize * blocksize + pixel
        return x[image, source, row // blocksize, column // blocksize]

    return tensor((n, depth, h * blocksize, w * blocksize), at)
