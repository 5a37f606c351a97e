"""RMSNormalization: x / √(mean of x² + ε) · scale, the mean over all axes from `axis` on."""

from typing import Any

from specs._broadcast import broadcast_to
from specs._normalize import inverse_rms, unknown_axis_and_epsilon
from superopt.ops.draws import axis as draw_axis
from superopt.ops.draws import pick, shape
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor, covered, normal_axis, tensor
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = shape(rng, 1, 4, empty=False)
    axis = draw_axis(rng, len(x))
    tail = x[axis % len(x) :]
    scale = pick(rng, tail, tail, x[-1:], (*(1 for _ in tail[1:]), x[-1]), (1,), ())
    return Draw((x, scale), {"axis": axis, **pick(rng, {}, {"epsilon": 1e-3}, {"epsilon": 0.5, "stash_type": 1})})


@operator("RMSNormalization", since=23, draw=draw, unknown=unknown_axis_and_epsilon)
def rms_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: Operand = 1e-5, stash_type: int = 1
) -> Tensor:
    covered(stash_type == 1, f"stash_type {stash_type}")
    k = normal_axis(axis, x.rank)
    scaled = broadcast_to(scale, x.shape)
    return tensor(x.shape, lambda *i: x[i] * inverse_rms(x.shape[k:], lambda *j: x[*i[:k], *j], epsilon) * scaled[i])
