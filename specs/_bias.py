"""A bias along the last axis, as com.microsoft's activations take it."""

from __future__ import annotations

from superopt.ops.formula import Tensor, require, tensor


def biased(x: Tensor, bias: Tensor) -> Tensor:
    require(x.rank >= 1, "a scalar has no axis for a bias")
    require(bias.rank == 1, "a bias has one axis")
    require(bias.shape[0] == x.shape[-1], "one bias for each place on the last axis")
    return tensor(x.shape, lambda *i: x[i] + bias[i[-1]])
