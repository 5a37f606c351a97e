"""Activations that the runtime's fused operators name: each is the operator of that name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from specs.clip import clip_by_attributes
from specs.elu import exponential_linear
from specs.hard_sigmoid import hard_logistic
from specs.hard_swish import hard_swish
from specs.leaky_relu import leaky_rectified
from specs.relu import relu
from specs.selu import selu
from specs.sigmoid import sigmoid
from specs.softplus import softplus
from specs.tanh import hyperbolic_tangent
from specs.thresholded_relu import thresholded_relu
from superopt.ops.element import Operand
from superopt.ops.formula import Tensor, covered
from superopt.ops.symbols import Symbols

_OPERATORS: Mapping[str, tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    "Clip": (clip_by_attributes, ("min", "max")),
    "Elu": (exponential_linear, ("alpha",)),
    "HardSigmoid": (hard_logistic, ("alpha", "beta")),
    "HardSwish": (hard_swish, ()),
    "LeakyRelu": (leaky_rectified, ("alpha",)),
    "Relu": (relu, ()),
    "Selu": (selu, ("alpha", "gamma")),
    "Sigmoid": (sigmoid, ()),
    "Softplus": (softplus, ()),
    "Tanh": (hyperbolic_tangent, ()),
    "ThresholdedRelu": (thresholded_relu, ("alpha",)),
}


def activated(x: Tensor, activation: str, among: Sequence[str], numbers: Sequence[Operand]) -> Tensor:
    """The operator called `activation`, of those that the fused one knows, with its attributes in order."""
    covered(activation in among, f"activation {activation}")
    operator, names = _OPERATORS[activation]
    covered(len(numbers) == len(names), f"activation {activation} with {len(numbers)} numbers")
    return operator(x, **dict(zip(names, numbers, strict=True)))


def attributes_of(activation: str) -> tuple[str, ...]:
    return _OPERATORS[activation][1]


def unknown_numbers(symbols: Symbols, activation: str) -> Iterator[tuple[str, Any]]:
    """Any value of each of its attributes, by name."""
    for name in attributes_of(activation):
        yield name, symbols.real(f"{activation}_{name}")
