"""InstanceNormalization: scale · (x − mean) / √(variance + ε) + B, mean and variance of each channel of each image."""

from typing import Any

from specs._normalize import apart, per_channel, standardized, unknown_epsilon
from superopt.ops.draws import pick, shape, size
from superopt.ops.element import Element, Operand
from superopt.ops.formula import Tensor, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    x = (size(rng, 0 if rng.random() < 0.1 else 1, 3), *shape(rng, 2, 4, empty=False))
    # the runtime takes x · s − mean · s, where s = scale / √ε for a single element
    arguments = {"epsilon": 0.5} if max(x[2:]) == 1 else pick(rng, {}, {"epsilon": 1e-3}, {"epsilon": 0.5})
    return Draw((x, x[1:2], x[1:2]), arguments, values=(apart, None, None))


@operator("InstanceNormalization", since=6, draw=draw, unknown=unknown_epsilon)
def instance_normalization(x: Tensor, scale: Tensor, b: Tensor, *, epsilon: Operand = 1e-5) -> Tensor:
    require(x.rank >= 3, "an image has at least one spatial axis")
    per_channel(scale, x.shape[1], "scale")
    per_channel(b, x.shape[1], "B")

    def at(n: Index, c: Index, *i: Index) -> Element:
        normal = standardized(x[n, c, *i], x.shape[2:], lambda *j: x[n, c, *j], epsilon)
        return scale[c] * normal + b[c]

    return tensor(x.shape, at)
