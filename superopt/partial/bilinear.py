"""Programs of one operator that is linear in its first two operands, as its formula tells: convolutions, products."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from superopt.ops.condition import deciding
from superopt.ops.degree import is_linear
from superopt.ops.element import ZERO
from superopt.ops.evaluate import sized
from superopt.ops.formula import Illegal, NotCovered, Tensor
from superopt.ops.index import symbol
from superopt.ops.registry import Operator, Registry
from superopt.partial.moves import Dims
from superopt.partial.program import Original
from superopt.rewrite.expression import evaluate
from superopt.rewrite.program import find
from superopt.rewrite.reading import Undetermined, strictly
from superopt.rewrite.rule import Call

WINDOWS = {"strides": (1, 1), "dilations": (1, 1), "pads": (2, 0)}
"""Attributes of windows: entries for each axis after the first two, and what they are where nothing is said."""


@dataclass(frozen=True)
class Bilinear:
    """y = operator(x, k, …) of inputs; a further operand, if any, is added."""

    original: Original
    call: Call
    operator: Operator
    names: tuple[str, ...]
    target: str
    dims: tuple[Dims, ...]
    """Shapes of the operands."""
    windows: Mapping[str, tuple[int, ...]]
    """Attributes of its windows, all of them; none where it has no windows."""
    wanted: Dims
    """The shape of the result."""

    @property
    def arguments(self) -> dict[str, Any]:
        return {name: evaluate(value, self.original.sizes) for name, value in self.call.arguments}

    @property
    def is_one_group(self) -> bool:
        """Whether it may have groups, and has not."""
        return self.operator.parameter("group") is not None and self.arguments.get("group", 1) == 1


def bilinear(original: Original, registry: Registry) -> Bilinear | None:
    """The program as such an operator; None where it is anything else."""
    if len(original.steps) != 1:
        return None
    (step,) = original.steps
    call = step.value
    if not isinstance(call, Call) or call.bundle is not None or len(step.targets) != 1:
        return None
    inputs = {g.name for g in original.given}
    names = tuple(o for o in call.operands if isinstance(o, str) and o in inputs)
    if len(names) != len(call.operands) or not 2 <= len(names) <= 3 or len(set(names)) < len(names):
        return None
    symbols = {size: symbol(size) for size in original.sizes}
    dims = tuple(tuple(evaluate(d, symbols) for d in original.dims(name)) for name in names)
    operator = find(call, registry)
    arguments = {name: evaluate(value, original.sizes) for name, value in call.arguments}
    wanted = result_shape(operator, dims, arguments)
    if wanted is None or not _is_linear(original, operator, names, arguments):
        return None
    rank = len(dims[0]) - 2
    windows = {
        name: tuple(arguments.get(name, [filler] * (times * rank)))
        for name, (times, filler) in WINDOWS.items()
        if operator.parameter(name) is not None
    }
    return Bilinear(original, call, operator, names, step.targets[0], dims, windows, wanted)


def result_shape(operator: Operator, operands: Iterable[Dims], arguments: Mapping[str, Any]) -> Dims | None:
    """None where ONNX does not allow these operands, or where that depends on what symbols stand for."""
    tensors: list[Tensor | None] = [Tensor(dims, lambda *_: ZERO) for dims in operands]
    try:
        with deciding(strictly):
            return operator.apply(tensors, arguments)[0].shape
    except (Illegal, NotCovered, Undetermined, ZeroDivisionError):
        return None


def _is_linear(original: Original, operator: Operator, names: tuple[str, ...], arguments: Mapping[str, Any]) -> bool:
    tensors: list[Tensor | None] = [
        sized(tuple(evaluate(d, original.sizes) for d in original.dims(name)), name) for name in names[:2]
    ]
    found = operator.apply(tensors, arguments)[0]
    return all(is_linear(found, name) for name in names[:2])
