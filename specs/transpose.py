"""Transpose: axes in another order; reversed where none is given."""

from collections.abc import Sequence
from typing import Any

from superopt.ops.draws import shape
from superopt.ops.formula import Tensor, require, tensor
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = shape(rng, 0, 5)
    return Draw((x,), {"perm": rng.permutation(len(x)).tolist()} if len(x) and rng.random() < 0.8 else {})


@operator("Transpose", since=1, elements="any", draw=draw)
def transpose(x: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    order = tuple(reversed(range(x.rank))) if perm is None else tuple(perm)
    require(sorted(order) == list(range(x.rank)), f"perm {list(order)} is no order of {x.rank} axes")
    place = [order.index(k) for k in range(x.rank)]
    return tensor(tuple(x.shape[k] for k in order), lambda *i: x[tuple(i[place[k]] for k in range(x.rank))])
