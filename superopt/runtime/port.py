"""What goes into a model and comes out of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from superopt.ir.types import DType

_TENSOR = re.compile(r"tensor\((\w+)\)\Z")
_ELEMENTS = {**{str(d): d for d in DType}, "float": DType.FLOAT32, "double": DType.FLOAT64}


@dataclass(frozen=True)
class Port:
    """An input or output.

    `dtype` is an element type (`float32`, `string`) or, for what is no tensor, onnxruntime's own words
    (`seq(tensor(float))`), and then `shape` is None. onnxruntime shows a tensor of unknown rank like a scalar: as ().
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...] | None

    @property
    def is_tensor(self) -> bool:
        return isinstance(self.dtype, DType)


def port(argument: Any) -> Port:
    """From onnxruntime's NodeArg."""
    match = _TENSOR.match(argument.type)
    element = _ELEMENTS.get(match.group(1)) if match else None
    if element is None:
        return Port(argument.name, argument.type, None)
    return Port(argument.name, element, tuple(argument.shape))
