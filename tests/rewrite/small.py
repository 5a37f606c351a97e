# pyright: basic
"""Small models as text, and every rewrite of one taken and compared."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from superopt.rewrite.rewriter import Rules
from tests.rewrite.taking import RULES, checked, difference, opened, run


def model(text: str, opset: int = 17, **constants: np.ndarray) -> bytes:
    """A graph as text, with weights beside it."""
    proto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]> {text}')
    for name, array in constants.items():
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    return proto.SerializeToString()


def every_way(data: bytes, feeds: dict[str, np.ndarray], by: Rules = RULES) -> list[str]:
    """Take each match alone, compare the answers, and name the rules."""
    before = run(data, feeds, optimized=False)
    start = opened(data)
    names: list[str] = []
    for found in start.matches(start.piece, by):
        name = found[0].pattern.rule.name
        after = start.exported(start.take(start.piece, found))
        assert not checked(after), name
        assert not difference(before, run(after, feeds, optimized=False)), name
        names.append(name)
    return names


def numbers(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)
