"""com.microsoft FusedConv: an activation of Conv plus a residual Z. (On CUDA: of activations, Relu alone.)"""

from collections.abc import Iterator, Sequence
from typing import Any

from specs import conv as _conv
from specs._fused import activated, attributes_of, unknown_numbers
from specs.conv import conv
from superopt.ops.draws import pick
from superopt.ops.element import Operand
from superopt.ops.formula import Illegal, Tensor, constant, elementwise, require
from superopt.ops.index import Index
from superopt.ops.registry import Draw, operator
from superopt.ops.symbols import Symbols

ACTIVATIONS = ("Clip", "HardSigmoid", "HardSwish", "LeakyRelu", "Relu", "Sigmoid", "Tanh")


def draw(rng: Any) -> Draw:
    drawn, arguments = _conv.draw(rng), {}
    if rng.random() < 0.95:
        activation = pick(rng, *ACTIVATIONS)
        arguments = {"activation": activation}
        if attributes_of(activation):
            arguments["activation_params"] = sorted(rng.uniform(-1, 1) for _ in attributes_of(activation))
    return Draw((*drawn.shapes, *_residual(rng, drawn)), {**drawn.arguments, **arguments})


def _residual(rng: Any, drawn: Draw) -> tuple[tuple[int, ...] | None, ...]:
    """Z as the convolution's result, or none; the laws pass over draws that are no convolution."""
    if rng.random() < 0.5:
        return ()
    try:
        shape = conv(*(constant(0, s) for s in drawn.shapes if s is not None), **drawn.arguments).shape
    except Illegal:
        return ()
    return (None, shape) if len(drawn.shapes) == 2 else (shape,)


def unknown(symbols: Symbols, ranks: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    for arguments in _conv.unknown(symbols, ranks):
        yield arguments
        for activation in ACTIVATIONS:
            numbers = [value for _, value in unknown_numbers(symbols, activation)]
            yield {**arguments, "activation": activation, "activation_params": numbers}


@operator("FusedConv", domain="com.microsoft", since=1, draw=draw, unknown=unknown)
def fused_conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    z: Tensor | None = None,
    *,
    activation: str | None = None,
    activation_params: Sequence[Operand] = (),
    auto_pad: str = "NOTSET",
    dilations: Sequence[Index] | None = None,
    group: Index = 1,
    kernel_shape: Sequence[Index] | None = None,
    pads: Sequence[Index] | None = None,
    strides: Sequence[Index] | None = None,
) -> Tensor:
    result = conv(
        x, w, b, auto_pad=auto_pad, dilations=dilations, group=group, kernel_shape=kernel_shape, pads=pads,
        strides=strides,
    )  # fmt: skip
    if z is not None:
        require(z.rank == result.rank, "the residual has the result's axes")
        for axis, n in enumerate(result.shape):
            require(z.shape[axis] == n, f"residual and result differ in axis {axis}")
        result = elementwise(lambda a, b: a + b, result, z)
    return result if activation is None else activated(result, activation, ACTIVATIONS, activation_params)
