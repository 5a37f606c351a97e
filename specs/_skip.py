"""A sum of an input, a residual that may lack the batch axis, and a bias, as the runtime's normalizations take it."""

from __future__ import annotations

from typing import Any

from specs._normalize import per_channel
from superopt.ops.draws import pick, size
from superopt.ops.element import Element
from superopt.ops.formula import Tensor, broadcast, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw

Shape = tuple[int, ...]


def draw_skip(rng: Any, vectors: int) -> Draw:
    """Input, residual, a scale, and some more operands with one element for each channel, present or not."""
    x: Shape = tuple(size(rng, 1, 4) for _ in range(pick(rng, 2, 3, 3)))
    if rng.random() < 0.05:
        x = (0, *x[1:])
    skip = pick(rng, x, x, (1, *x[1:]), x[1:]) if len(x) == 3 and x[0] else x
    further = [pick(rng, x[-1:], None) for _ in range(vectors)]
    while further and further[-1] is None:
        further.pop()
    arguments = pick(rng, {}, {"epsilon": 1e-3}, {"epsilon": 0.5})
    return Draw((x, skip, x[-1:], *further), arguments, outputs=pick(rng, 1, 1, 2, 3, 4))


def summed(x: Tensor, skip: Tensor, bias: Tensor | None) -> Tensor:
    """input + skip + bias."""
    require(x.rank in (2, 3), "the input has the axes batch, sequence and channels, or the last two")
    require(skip.rank in (2, x.rank), "the residual has the input's axes, or lacks the batch axis")
    for k in (1, 2):
        require(skip.shape[-k] == x.shape[-k], f"input and residual differ in axis {-k}")
    if skip.rank == 3 and skip.shape[0] != x.shape[0]:
        require(skip.shape[0] == 1, "the residual is one for the batch, or one for each of it")
    residual = broadcast(skip, x.shape)
    if bias is not None:
        per_channel(bias, x.shape[-1], "bias")

    def at(*i: Index) -> Element:
        total = x[i] + residual[i]
        return total if bias is None else total + bias[i[-1]]

    return tensor(x.shape, at)
