# pyright: basic
"""Rules with tables of numbers on their right side: taken, exported, run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.errors import BadInput, BadText
from superopt.rewrite.pattern import compile_pattern
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.text import format_rule, parse_rules
from tests.rewrite.taking import REGISTRY, SHIPPED, opened

TILES = Rules([rule for rule in SHIPPED if " recipe=tiles " in rule.origin], REGISTRY)


def convolution(sizes: Sequence[int], window: Sequence[int], *, bias: bool, pads: int | None = None) -> bytes:
    rng = np.random.default_rng(3)
    weights = [("k", rng.standard_normal((5, 3, *window)))] + ([("b", rng.standard_normal(5))] if bias else [])
    half = [r // 2 if pads is None else pads for r in window] * 2
    node = helper.make_node("Conv", ["x", *(name for name, _ in weights)], ["y"], pads=half)
    left = [n + 2 * h - r + 1 for n, h, r in zip(sizes, half, window, strict=False)]
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, *sizes])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 5, *left])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def run(data: bytes, x: np.ndarray) -> np.ndarray:
    return np.asarray(ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0])


@pytest.mark.ort
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("sizes", "window", "ways"),
    [
        ((8, 12), (3, 3), 2),
        ((9, 13), (3, 3), 2),
        ((6, 10), (3, 3), 2),
        ((7, 7), (3, 3), 2),
        ((8, 7), (3, 3), 1),
        ((9, 6), (3, 3), 1),
        ((2, 2), (3, 3), 1),
        ((6, 8), (5, 5), 1),
        ((5, 7), (5, 5), 1),
        ((8,), (3,), 2),
        ((9,), (3,), 2),
        ((10,), (3,), 2),
        ((11,), (3,), 2),
        ((5, 8), (1, 3), 1),
        ((4, 9), (1, 3), 1),
        ((3, 10), (1, 3), 1),
        ((2, 7), (1, 3), 1),
        ((8, 5), (3, 1), 1),
        ((9, 4), (3, 1), 1),
        ((10, 3), (3, 1), 1),
        ((7, 2), (3, 1), 1),
    ],
)
def test_a_convolution_by_tiles_gives_the_same(
    sizes: tuple[int, ...], window: tuple[int, ...], ways: int, bias: bool
) -> None:
    data = convolution(sizes, window, bias=bias)
    model = opened(data)
    found = model.matches(model.piece, TILES)
    assert len(found) == ways
    x = np.random.default_rng(5).standard_normal((2, 3, *sizes)).astype(np.float32)
    for way in found:
        after = model.exported(model.take(model.piece, way))
        np.testing.assert_allclose(run(after, x), run(data, x), rtol=1e-4, atol=1e-4)


@pytest.mark.ort
@pytest.mark.parametrize(("sizes", "window", "pads"), [((8, 8), (3, 3), 0), ((8, 8), (2, 2), 1), ((8, 8), (3, 3), 2)])
def test_other_padding_is_left_alone(sizes: tuple[int, ...], window: tuple[int, ...], pads: int) -> None:
    model = opened(convolution(sizes, window, bias=True, pads=pads))
    assert model.matches(model.piece, TILES) == []


@pytest.mark.unit
def test_a_table_is_read_and_printed() -> None:
    (rule,) = parse_rules("rule turn\n  given x: [n, 2]\n  y = Neg(x)\n  =>\n  y = MatMul(x, [[-1, 0], [0, -1]])\n")
    (again,) = parse_rules(format_rule(rule))
    assert again == rule


@pytest.mark.unit
@pytest.mark.parametrize("table", ["[[1, 2], [3]]", "[1, [2]]", "[]", "[n, 1]", '["a"]'])
def test_what_is_no_table_is_refused(table: str) -> None:
    with pytest.raises(BadText, match="a list of numbers"):
        parse_rules(f"rule bad\n  given x: [n, 2]\n  y = Neg(x)\n  =>\n  y = MatMul(x, {table})\n")


@pytest.mark.unit
def test_a_table_is_not_looked_for() -> None:
    (rule,) = parse_rules("rule back\n  given x: [n, 2]\n  y = MatMul(x, [[-1, 0], [0, -1]])\n  =>\n  y = Neg(x)\n")
    with pytest.raises(BadInput, match="right side only"):
        compile_pattern(rule, REGISTRY)
