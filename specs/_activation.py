"""Functions of one element that several operators are made of."""

from __future__ import annotations

from superopt.ops.element import PI, Element, Operand, call, maximum, minimum
from superopt.ops.registry import Unknown


def sigmoid(x: Element) -> Element:
    """1 / (1 + e^−x)."""
    return 1 / (1 + call("exp", -x))


def softplus(x: Element) -> Element:
    """ln(1 + e^x)."""
    return call("log", 1 + call("exp", x))


def hard_sigmoid(x: Element, alpha: Operand, beta: Operand) -> Element:
    """max(0, min(1, α·x + β))."""
    return maximum(minimum(x * alpha + beta, 1), 0)


def leaky_relu(x: Element, slope: Operand) -> Element:
    """x where x ≥ 0, slope·x where x < 0."""
    return maximum(x, 0) + minimum(x, 0) * slope


def elu(x: Element, alpha: Operand) -> Element:
    """x where x ≥ 0, α·(e^x − 1) where x < 0."""
    return maximum(x, 0) + (call("exp", minimum(x, 0)) - 1) * alpha


def gelu(x: Element) -> Element:
    """x/2 · (1 + erf(x/√2))."""
    return 0.5 * x * (1 + call("erf", x / call("sqrt", 2)))


def gelu_by_tanh(x: Element) -> Element:
    """x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³)))."""
    return 0.5 * x * (1 + call("tanh", call("sqrt", 2 / PI) * (x + 0.044715 * x**3)))


def unknown_reals(*names: str) -> Unknown:
    """Attributes that are any real number."""
    return lambda symbols, _: [{name: symbols.real(name) for name in names}]
