"""Gelu: x/2 · (1 + erf(x/√2)), or, where asked to approximate, x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))."""

from collections.abc import Iterator
from typing import Any

from specs import _activation
from superopt.ops.draws import pick, shape
from superopt.ops.formula import Tensor, elementwise, require
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols


def draw(rng: Any) -> Draw:
    return Draw((shape(rng),), pick(rng, {}, {"approximate": "none"}, {"approximate": "tanh"}))


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    yield {"approximate": "none"}
    yield {"approximate": "tanh"}


@operator("Gelu", since=20, draw=draw, unknown=unknown)
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    require(approximate in ("none", "tanh"), f"approximate {approximate}")
    return elementwise(_activation.gelu if approximate == "none" else _activation.gelu_by_tanh, x)
