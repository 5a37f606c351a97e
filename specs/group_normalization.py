"""GroupNormalization: scale · (x − mean) / √(variance + ε) + bias, mean and variance of each group of channels."""

from collections.abc import Iterator
from typing import Any

from specs._normalize import apart, per_channel, standardized
from superopt.ops.draws import pick, shape, size
from superopt.ops.element import Element, Operand
from superopt.ops.formula import Tensor, covered, require, tensor
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    groups, per_group = size(rng, 1, 3), size(rng, 1, 3)
    x = (size(rng, 1, 3), groups * per_group, *shape(rng, 0, 3, empty=False))
    arguments = {"num_groups": groups, **pick(rng, {}, {"epsilon": 1e-3}, {"epsilon": 0.5})}
    return Draw((x, x[1:2], x[1:2]), arguments, values=(apart, None, None))


def draw_by_group(rng: Any) -> Draw:
    drawn = draw(rng)
    groups = (drawn.arguments["num_groups"],)
    return Draw((drawn.shapes[0], groups, groups), drawn.arguments, values=drawn.values)


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    yield {"epsilon": symbols.real("epsilon"), "num_groups": symbols.positive("groups")}


def normal_groups(x: Tensor, num_groups: Index, epsilon: Operand) -> Tensor:
    """(x − mean) / √(variance + ε) in each group of channels of each image."""
    require(x.rank >= 2, "images have channels")
    require(x.shape[1] % num_groups == 0, "num_groups does not divide the channels")
    size = x.shape[1] // num_groups

    def at(n: Index, c: Index, *i: Index) -> Element:
        first = c // size * size
        return standardized(x[n, c, *i], (size, *x.shape[2:]), lambda d, *j: x[n, first + d, *j], epsilon)

    return tensor(x.shape, at)


@operator("GroupNormalization", since=18, until=20, draw=draw_by_group, unknown=unknown)
def group_normalization_by_group(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: Operand = 1e-5, num_groups: Index
) -> Tensor:
    """Scale and bias for each group."""
    normal = normal_groups(x, num_groups, epsilon)
    per_channel(scale, num_groups, "scale")
    per_channel(bias, num_groups, "bias")
    size = x.shape[1] // num_groups
    return tensor(x.shape, lambda n, c, *i: scale[c // size] * normal[n, c, *i] + bias[c // size])


@operator("GroupNormalization", since=21, draw=draw, unknown=unknown)
def group_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: Operand = 1e-5, num_groups: Index, stash_type: int = 1
) -> Tensor:
    """Scale and bias for each channel."""
    covered(stash_type == 1, f"stash_type {stash_type}")
    normal = normal_groups(x, num_groups, epsilon)
    per_channel(scale, x.shape[1], "scale")
    per_channel(bias, x.shape[1], "bias")
    return tensor(x.shape, lambda n, c, *i: scale[c] * normal[n, c, *i] + bias[c])
