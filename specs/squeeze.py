"""Squeeze: without some axes of size 1; without all of them where none is named."""

from typing import Any

from superopt.ops.draws import shape
from superopt.ops.formula import Static, Tensor, covered, normal_axis, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = tuple(1 if rng.random() < 0.4 else n for n in shape(rng, 0, 5))
    if rng.random() < 0.3:
        return Draw((x,))
    axes = [int(a) for a in rng.permutation(len(x)) if x[a] == 1 and rng.random() < 0.7]
    return Draw((x,), {"axes": [a - len(x) if rng.random() < 0.5 else a for a in axes]} if axes else {})


@operator("Squeeze", since=1, elements="any", draw=draw)
def squeeze(x: Tensor, axes: Static = None) -> Tensor:
    if axes is None:
        dropped = {k for k, n in enumerate(x.shape) if n == 1}
    else:
        covered(len(axes) > 0, "an empty list of axes, which onnxruntime takes for none given")
        dropped = {normal_axis(a, x.rank) for a in axes}
        for k in dropped:
            require(x.shape[k] == 1, f"axis {k} is not of size 1")
    kept = [k for k in range(x.rank) if k not in dropped]

    def place(i: tuple[Index, ...]) -> tuple[Index, ...]:
        return tuple(0 if k in dropped else i[kept.index(k)] for k in range(x.rank))

    return tensor(tuple(x.shape[k] for k in kept), lambda *i: x[place(i)])
