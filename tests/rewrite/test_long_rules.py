# pyright: basic
"""Rules of many steps, as heads of many layers give them: what is written is read back one step at a time."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from superopt.rewrite.rewriter import Rules
from superopt.rewrite.text import parse_rules
from tests.rewrite.taking import REGISTRY, checked, difference, opened, run

pytestmark = pytest.mark.ort

MANY = 400


def test_a_rule_of_many_steps_is_written() -> None:
    steps = [f"  t{k} = Conv({f't{k - 1}' if k else 'Abs(x)'}, k, pads=[0, 1])" for k in range(MANY)]
    lines = ["rule long", "  given x: [n, c, 5]  k: [c, c, 2]", "  y = Conv(x, k, pads=[0, 1])", "  =>"]
    (rule,) = parse_rules("\n".join([*lines, *steps, f"  y = Relu(t{MANY - 1})"]))
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[1, 1, 5] x, float[1, 1, 2] k) => (float[1, 1, 5] y)
    { y = Conv <pads = [0, 1]> (x, k) }"""
    model = opened(parser.parse_model(text).SerializeToString())
    (found,) = model.matches(model.piece, Rules([rule], REGISTRY))
    data = model.exported(model.take(model.piece, found))
    assert not checked(data)
    x = np.ones((1, 1, 5), np.float32)
    average = np.full((1, 1, 2), 0.5, np.float32)
    expected = x
    for _ in range(MANY):
        expected = (expected + np.pad(expected[:, :, 1:], ((0, 0), (0, 0), (0, 1)))) / 2
    assert not difference([expected], run(data, {"x": x, "k": average}))
