"""com.microsoft SkipSimplifiedLayerNormalization: RMSNormalization over the last axis of input + skip + bias.

Its results are the normalized sum, a mean of 0 (none is subtracted), 1 / √(mean of squares + ε), and the sum itself;
the CUDA kernel leaves out the second and the third.
"""

from typing import Any

from specs._normalize import per_channel, unknown_epsilon
from specs._skip import draw_skip, summed
from specs.simplified_layer_normalization import simplified_layer_normalization
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor, constant
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return draw_skip(rng, 1)


@operator("SkipSimplifiedLayerNormalization", domain="com.microsoft", since=1, draw=draw, unknown=unknown_epsilon)
def skip_simplified_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None = None, *, epsilon: Operand = 1e-12, outputs: int = 1
) -> tuple[Tensor, ...]:
    total = summed(x, skip, bias)
    per_channel(gamma, x.shape[-1], "gamma")
    normal, inverse = simplified_layer_normalization(total, gamma, epsilon=epsilon, outputs=2)
    return (normal, constant(0, inverse.shape), inverse, total)[:outputs]
