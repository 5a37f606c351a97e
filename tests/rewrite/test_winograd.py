# pyright: basic
"""Rules with tables of numbers on their right side: taken, exported, run."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.errors import BadInput, BadText
from superopt.rewrite.pattern import compile_pattern
from superopt.rewrite.text import format_rule, parse_rules
from tests.rewrite.taking import REGISTRY, opened, rules


def convolution(height: int, width: int, *, bias: bool, pads: int = 1, batch: int = 2) -> bytes:
    rng = np.random.default_rng(3)
    weights = [("k", rng.standard_normal((5, 3, 3, 3)))] + ([("b", rng.standard_normal(5))] if bias else [])
    node = helper.make_node("Conv", ["x", *(name for name, _ in weights)], ["y"], pads=[pads] * 4)
    shape = [batch, 3, height, width]
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [
            helper.make_tensor_value_info(
                "y", TensorProto.FLOAT, [batch, 5, height + 2 * pads - 2, width + 2 * pads - 2]
            )
        ],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def run(data: bytes, x: np.ndarray) -> np.ndarray:
    return np.asarray(ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0])


@pytest.mark.ort
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("height", "width", "parity"), [(8, 6, "even"), (7, 5, "odd"), (2, 2, "even"), (3, 9, "odd")])
def test_a_convolution_by_tiles_gives_the_same(height: int, width: int, parity: str, bias: bool) -> None:
    data = convolution(height, width, bias=bias)
    model = opened(data)
    (found,) = model.matches(model.piece, rules(f"conv-winograd-{parity}{'-bias' if bias else ''}"))
    after = model.exported(model.take(model.piece, found))
    x = np.random.default_rng(5).standard_normal((2, 3, height, width)).astype(np.float32)
    np.testing.assert_allclose(run(after, x), run(data, x), rtol=1e-4, atol=1e-5)


@pytest.mark.ort
@pytest.mark.parametrize(("height", "width", "pads"), [(7, 6, 1), (8, 8, 0)])
def test_other_sizes_and_padding_are_left_alone(height: int, width: int, pads: int) -> None:
    model = opened(convolution(height, width, bias=True, pads=pads))
    assert model.matches(model.piece, rules("conv-winograd-even-bias", "conv-winograd-odd-bias")) == []


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
