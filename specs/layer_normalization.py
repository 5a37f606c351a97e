"""LayerNormalization: (x − mean) / √(variance + ε) · scale + B over all axes from `axis` on; also mean and 1/√(…)."""

from typing import Any

from specs._broadcast import broadcast_to
from specs._normalize import inverse_root, standardized, unknown_axis_and_epsilon, variance
from specs._reduce import mean_all
from superopt.ops.draws import axis as draw_axis
from superopt.ops.draws import pick, shape
from superopt.ops.element import Element, Operand
from superopt.ops.formula import Tensor, covered, normal_axis, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = shape(rng, 1, 4, empty=False)
    axis = draw_axis(rng, len(x))
    tail = x[axis % len(x) :]
    scale, b = (pick(rng, tail, tail, x[-1:], x, (1, *x[1:]), (1,), ()) for _ in range(2))
    arguments = {"axis": axis, **pick(rng, {}, {"epsilon": 1e-3}, {"epsilon": 0.5, "stash_type": 1})}
    return Draw((x, scale, b) if rng.random() < 0.6 else (x, scale), arguments, outputs=pick(rng, 1, 1, 2, 3))


@operator("LayerNormalization", since=17, draw=draw, unknown=unknown_axis_and_epsilon)
def layer_normalization(
    x: Tensor,
    scale: Tensor,
    b: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: Operand = 1e-5,
    stash_type: int = 1,
    outputs: int = 1,
) -> tuple[Tensor, ...]:
    covered(stash_type == 1, f"stash_type {stash_type}")
    k = normal_axis(axis, x.rank)
    sizes = x.shape[k:]
    scaled = broadcast_to(scale, x.shape)
    shifted = None if b is None else broadcast_to(b, x.shape)

    def at(*i: Index) -> Element:
        normal = standardized(x[i], sizes, lambda *j: x[*i[:k], *j], epsilon)
        return normal * scaled[i] if shifted is None else normal * scaled[i] + shifted[i]

    once = (*x.shape[:k], *(1 for _ in sizes))
    mean = tensor(once, lambda *i: mean_all(sizes, lambda *j: x[*i[:k], *j]))
    inverse = tensor(once, lambda *i: inverse_root(variance(sizes, lambda *j: x[*i[:k], *j]), epsilon))
    return (tensor(x.shape, at), mean, inverse)[:outputs]
