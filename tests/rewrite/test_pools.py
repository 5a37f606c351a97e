# pyright: basic
"""Pools that round up where there is nothing to round are read as those that round down."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

from superopt.rewrite.reading import Reading
from tests.rewrite.taking import difference, opened, rules, run

POOL = """<ir_version: 8, opset_import: ["": 17]>
g (float[2, 3, {size}, 9] x) => (float[a, b, c, d] y) {{
    r = Relu(x)
    y = MaxPool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1, pads = {pads}>(r)
}}"""


def pool(size: int, pads: str = "[0, 0, 0, 0]") -> bytes:
    return parser.parse_model(POOL.format(size=size, pads=pads)).SerializeToString()


@pytest.mark.unit
@pytest.mark.parametrize(
    ("size", "pads", "rounds"),
    [
        (7, "[0, 0, 0, 0]", 0),
        (8, "[0, 0, 0, 0]", 1),
        (7, "[1, 1, 1, 1]", 0),
        (8, "[1, 1, 1, 1]", 1),
        (8, "[1, 1, 0, 1]", 0),
        (3, "[0, 0, 0, 0]", 0),
    ],
)
def test_rounding_up_is_told_where_it_adds_a_window(size: int, pads: str, rounds: int) -> None:
    start = opened(pool(size, pads))
    reading = start.rewriter.reader.read(start.piece.nodes[-1])
    assert isinstance(reading, Reading)
    assert reading.arguments["ceil_mode"] == rounds


@pytest.mark.ort
@pytest.mark.parametrize(("size", "pads"), [(7, "[0, 0, 0, 0]"), (7, "[1, 1, 1, 1]"), (9, "[2, 1, 2, 1]")])
def test_relu_goes_behind_pools_with_padding(size: int, pads: str) -> None:
    """Padding is below all numbers, and every window has one of the image: in none is it what Relu would raise to 0."""
    data = pool(size, pads)
    start = opened(data)
    found = start.matches(start.piece, rules("max-pool-of-relu"))
    assert found
    after = start.exported(start.take(start.piece, found[0]))
    x = np.random.default_rng(0).normal(-2.0, 1.0, (2, 3, size, 9)).astype(np.float32)
    assert not difference(run(data, {"x": x}), run(after, {"x": x}))
    assert [n.op_type for n in onnx.load_from_string(after).graph.node] == ["MaxPool", "Relu"]
