"""com.microsoft GroupNorm: GroupNormalization with channels last (or not), and x · sigmoid(x) of it on demand.

The CUDA kernel, the only one, takes channels last and an even number of them in each group; the formula, any.
"""

import itertools
from collections.abc import Iterator
from typing import Any

from specs._normalize import apart
from specs.group_normalization import group_normalization
from specs.swish import swish
from specs.transpose import transpose
from superopt.ops.draws import pick, size
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor, covered, require
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    groups, per_group = size(rng, 1, 4), pick(rng, 2, 4, 6)
    x = (size(rng, 1, 3), size(rng, 1, 4), size(rng, 1, 4), groups * per_group)
    arguments = {"groups": groups, "activation": int(rng.integers(2)), **pick(rng, {}, {"epsilon": 1e-3})}
    return Draw((x, x[3:], x[3:]), arguments, values=(apart, None, None))


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    numbers = {"epsilon": symbols.real("epsilon"), "groups": symbols.positive("groups")}
    for activation, channels_last in itertools.product((0, 1), (0, 1)):
        yield {**numbers, "activation": activation, "channels_last": channels_last}


@operator("GroupNorm", domain="com.microsoft", since=1, runs_on="cuda", draw=draw, unknown=unknown)
def group_norm(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    *,
    activation: int,
    channels_last: int = 1,
    epsilon: Operand = 1e-5,
    groups: Index,
) -> Tensor:
    require(x.rank == 4, "an image has two spatial axes")
    covered(activation in (0, 1), f"activation {activation}")
    images = transpose(x, perm=(0, 3, 1, 2)) if channels_last else x
    normal = group_normalization(images, gamma, beta, epsilon=epsilon, num_groups=groups)
    result = swish(normal) if activation else normal
    return transpose(result, perm=(0, 2, 3, 1)) if channels_last else result
