"""SpaceToDepth: blocks of pixels gathered into channels, the pixels of a block one after the other."""

from collections.abc import Iterator
from typing import Any

from superopt.ops.draws import size
from superopt.ops.element import Element
from superopt.ops.formula import Tensor, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    block = size(rng, 1, 3)
    x = (size(rng, 1, 2), size(rng, 1, 3), block * size(rng, 1, 4), block * size(rng, 1, 4))
    return Draw((x,), {"blocksize": block})


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    yield {"blocksize": symbols.positive("blocksize")}


@operator("SpaceToDepth", since=1, elements="any", draw=draw, unknown=unknown)
def space_to_depth(x: Tensor, *, blocksize: Index) -> Tensor:
    require(x.rank == 4, "an image has four axes")
    n, c, h, w = x.shape
    require(blocksize >= 1, "a block is not empty")
    require(h % blocksize == 0, "the blocks do not divide the height")
    require(w % blocksize == 0, "the blocks do not divide the width")

    def at(image: Index, channel: Index, row: Index, column: Index) -> Element:
        pixel = channel // c
        return x[image, channel % c, row * blocksize + pixel // blocksize, column * blocksize + pixel % blocksize]

    return tensor((n, c * blocksize * blocksize, h // blocksize, w // blocksize), at)
