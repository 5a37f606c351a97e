"""MatMul: product of two matrices, batched over leading axes, which broadcast; a vector counts as a row or column."""

from typing import Any

from superopt.ops.draws import pick, shape, size
from superopt.ops.element import Element, sum_over
from superopt.ops.formula import Tensor, broadcast, broadcast_shape, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    m, k, n = size(rng), size(rng), size(rng)
    batch = shape(rng, 0, 2)
    a, b = (*batch, m, k), (*pick(rng, batch, (1,) * len(batch), batch[1:]), k, n)
    return Draw(pick(rng, (a, b), (a, b), (a, b), ((k,), b), (a, (k,)), ((k,), (k,))))


@operator("MatMul", since=1, elements="any", draw=draw)
def matmul(a: Tensor, b: Tensor) -> Tensor:
    require(a.rank >= 1, "a scalar is no matrix")
    require(b.rank >= 1, "a scalar is no matrix")
    row, column = a.rank == 1, b.rank == 1
    left = tensor((1, *a.shape), lambda _, k: a[k]) if row else a
    right = tensor((*b.shape, 1), lambda k, _: b[k]) if column else b
    k = left.shape[-1]
    require(right.shape[-2] == k, "inner dimensions differ")
    batch = broadcast_shape(left.shape[:-2], right.shape[:-2])
    left = broadcast(left, (*batch, *left.shape[-2:]))
    right = broadcast(right, (*batch, *right.shape[-2:]))

    def at(*i: Index) -> Element:
        outer, rest = i[: len(batch)], list(i[len(batch) :])
        m = 0 if row else rest.pop(0)
        n = 0 if column else rest.pop(0)
        return sum_over(k, lambda j: left[*outer, m, j] * right[*outer, j, n])

    rows = () if row else left.shape[-2:-1]
    columns = () if column else right.shape[-1:]
    return tensor((*batch, *rows, *columns), at)
