"""SimplifiedLayerNormalization: RMSNormalization as onnxruntime had it first, also 1 / √(mean of x² + ε).

The runtime's own operator, though it keeps it in ONNX's domain, at any opset.
"""

from typing import Any

from specs import rms_normalization as _rms
from specs._normalize import inverse_rms, unknown_axis_and_epsilon
from specs.rms_normalization import rms_normalization
from superopt.ops.draws import pick
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor, normal_axis, tensor
from superopt.ops.registry import Draw, operator


def draw(rng: Any) -> Draw:
    drawn = _rms.draw(rng)
    return Draw(drawn.shapes, drawn.arguments, outputs=pick(rng, 1, 2))


@operator("SimplifiedLayerNormalization", since=1, draw=draw, unknown=unknown_axis_and_epsilon)
def simplified_layer_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: Operand = 1e-5, stash_type: int = 1, outputs: int = 1
) -> tuple[Tensor, ...]:
    normal = rms_normalization(x, scale, axis=axis, epsilon=epsilon, stash_type=stash_type)
    k = normal_axis(axis, x.rank)
    sizes = x.shape[k:]
    inverse = tensor(
        (*x.shape[:k], *(1 for _ in sizes)), lambda *i: inverse_rms(sizes, lambda *j: x[*i[:k], *j], epsilon)
    )
    return (normal, inverse)[:outputs]
