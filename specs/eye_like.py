"""EyeLike: ones on a diagonal of a matrix, zeros elsewhere; of its operand only the shape counts."""

from typing import Any

from superopt.ops.draws import shape, size
from superopt.ops.element import select
from superopt.ops.formula import Tensor, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    arguments: dict[str, Any] = {"k": size(rng, -4, 4)} if rng.random() < 0.7 else {}
    return Draw((shape(rng, 2, 2),), {**arguments, **({"dtype": 1} if rng.random() < 0.3 else {})})


@operator("EyeLike", since=9, elements="any", draw=draw)
def eye_like(x: Tensor, *, dtype: int | None = None, k: Index = 0) -> Tensor:
    """The values are the same in any `dtype`."""
    require(x.rank == 2, "a matrix has two axes")
    return tensor(x.shape, lambda row, column: select(column == row + k, 1, 0))
