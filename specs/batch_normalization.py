"""BatchNormalization: (x − mean) / √(variance + ε) · scale + B, with a mean and a variance given for each channel."""

from typing import Any

from specs._normalize import inverse_root, per_channel, unknown_epsilon
from superopt.ops.draws import pick, shape
from superopt.ops.element import Element, Operand
from superopt.ops.formula import Tensor, covered, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator


def positive(rng: Any, shape: tuple[int, ...]) -> Any:
    return rng.uniform(0.2, 3, shape)


def draw(rng: Any) -> Draw:
    x = shape(rng, 1, 5)
    channels = x[1:2] or (1,)
    arguments = pick(rng, {}, {"epsilon": 1e-3}, {"epsilon": 0.5, "momentum": 0.5}, {"training_mode": 0})
    return Draw((x, *[channels] * 4), arguments, values=(None, None, None, None, positive))


@operator("BatchNormalization", since=7, draw=draw, unknown=unknown_epsilon)
def batch_normalization(
    x: Tensor,
    scale: Tensor,
    b: Tensor,
    mean: Tensor,
    variance: Tensor,
    *,
    epsilon: Operand = 1e-5,
    momentum: Operand = 0.9,
    spatial: int = 1,
    training_mode: int = 0,
    outputs: int = 1,
) -> Tensor:
    covered(not training_mode, "training, for which momentum is")
    covered(spatial == 1, "statistics of each element, an attribute until opset 8")
    covered(outputs == 1, "running statistics")
    require(x.rank >= 1, "a scalar has no channels")
    channels = x.shape[1] if x.rank > 1 else 1
    for name, operand in {"scale": scale, "B": b, "mean": mean, "variance": variance}.items():
        per_channel(operand, channels, name)

    def at(*i: Index) -> Element:
        c = i[1] if x.rank > 1 else 0
        return (x[i] - mean[c]) * inverse_root(variance[c], epsilon) * scale[c] + b[c]

    return tensor(x.shape, at)
