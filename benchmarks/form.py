# pyright: basic
"""What a form of a part of a network is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import helper

MICROSOFT = "com.microsoft"


@dataclass
class Form:
    name: str
    nodes: list[onnx.NodeProto]
    constants: dict[str, np.ndarray]
    options: dict[str, str] = field(default_factory=dict)


@dataclass
class Part:
    name: str
    x: np.ndarray
    forms: list[Form]


def node(op: str, inputs: str, outputs: str, domain: str = "", **attributes) -> onnx.NodeProto:
    """Names apart by blanks; `_` for an operand that is left out."""
    read = ["" if name == "_" else name for name in inputs.split()]
    return helper.make_node(op, read, outputs.split(), domain=domain, **attributes)


def drawn(rng, *shape: int, scale: float = 0.05) -> np.ndarray:
    return (rng.standard_normal(shape) * scale).astype(np.float16)
