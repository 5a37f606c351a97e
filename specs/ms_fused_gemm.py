"""com.microsoft FusedGemm: an activation of Gemm."""

from collections.abc import Iterator
from typing import Any

from specs import gemm as _gemm
from specs._fused import activated, attributes_of, unknown_numbers
from specs.gemm import gemm
from superopt.ops.draws import pick
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols

ACTIVATIONS = ("Elu", "HardSigmoid", "LeakyRelu", "Relu", "Selu", "Sigmoid", "Softplus", "Tanh", "ThresholdedRelu")


def draw(rng: Any) -> Draw:
    drawn, activation = _gemm.draw(rng), pick(rng, *ACTIVATIONS)
    numbers = {f"activation_{name}": rng.uniform(0.1, 1) for name in attributes_of(activation)}
    return Draw(drawn.shapes, {**drawn.arguments, "activation": activation, **numbers})


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for arguments in _gemm.unknown(symbols, ranks):
        for activation in ACTIVATIONS:
            numbers = {f"activation_{name}": value for name, value in unknown_numbers(symbols, activation)}
            yield {**arguments, "activation": activation, **numbers}


@operator("FusedGemm", domain="com.microsoft", since=1, draw=draw, unknown=unknown)
def fused_gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    activation: str,
    activation_alpha: Operand | None = None,
    activation_beta: Operand | None = None,
    activation_gamma: Operand | None = None,
    alpha: Operand = 1.0,
    beta: Operand = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    product = gemm(a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    numbers = [n for n in (activation_alpha, activation_beta, activation_gamma) if n is not None]
    return activated(product, activation, ACTIVATIONS, numbers)
