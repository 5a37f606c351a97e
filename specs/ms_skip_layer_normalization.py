"""com.microsoft SkipLayerNormalization: LayerNormalization over the last axis of input + skip + bias.

Its results are the normalized sum, mean, 1 / √(variance + ε), and the sum itself; the CUDA kernel leaves out the
second and the third.
"""

from typing import Any

from specs._normalize import per_channel, unknown_epsilon
from specs._skip import draw_skip, summed
from specs.layer_normalization import layer_normalization
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    return draw_skip(rng, 2)


@operator("SkipLayerNormalization", domain="com.microsoft", since=1, draw=draw, unknown=unknown_epsilon)
def skip_layer_normalization(
    x: Tensor,
    skip: Tensor,
    gamma: Tensor,
    beta: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    epsilon: Operand = 1e-12,
    outputs: int = 1,
) -> tuple[Tensor, ...]:
    total = summed(x, skip, bias)
    per_channel(gamma, x.shape[-1], "gamma")
    if beta is not None:
        per_channel(beta, x.shape[-1], "beta")
    return (*layer_normalization(total, gamma, beta, epsilon=epsilon, outputs=3), total)[:outputs]
