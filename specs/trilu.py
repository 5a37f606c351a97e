"""Trilu: a triangle of each matrix, from its k-th diagonal up or down; zeros elsewhere."""

from typing import Any

from superopt.ops.draws import pick, shape, size
from superopt.ops.element import Element, select
from superopt.ops.formula import Static, Tensor, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    arguments: dict[str, Any] = pick(rng, {}, {"upper": 0}, {"upper": 1})
    return Draw((shape(rng, 2, 4),), {**arguments, **({"k": size(rng, -5, 5)} if rng.random() < 0.7 else {})})


@operator("Trilu", since=14, elements="any", draw=draw)
def trilu(x: Tensor, k: Static = 0, *, upper: int = 1) -> Tensor:
    require(x.rank >= 2, "a matrix has two axes")

    def at(*i: Index) -> Element:
        diagonal = i[-1] - i[-2]
        return select(diagonal >= k if upper else diagonal <= k, x[i], 0)

    return tensor(x.shape, at)
