# pyright: basic
"""What a rewrite makes is named anew, also where it is computed from the very value that it replaces."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.ir.graph import Value, make_node
from superopt.rewrite.piece import rewritten
from tests.rewrite.small import model, numbers
from tests.rewrite.taking import checked, opened, run

pytestmark = pytest.mark.unit


def test_a_value_that_its_successor_is_computed_from_keeps_a_name() -> None:
    data = model("g (float[3, 4] x) => (float[3, 4] z) { y = Relu(x) z = Neg(y) }")
    start = opened(data)
    y = next(Value(node) for node in start.piece.nodes if node.op == "Relu")
    abs_of_y = make_node("Abs", [y], {}, [y.type])
    found = rewritten(start.piece, {y: Value(abs_of_y)}, "test").piece
    names = [name for tag in found.tags.values() for name in tag.outputs]
    assert len(names) == len(set(names)) == 3
    assert found.names["y"] == Value(abs_of_y)
    assert [found.tags[node].outputs for node in found.nodes] == [("y~1",), ("y",), ("z",)]
    after = start.exported(found)
    assert not checked(after)
    feeds = {"x": numbers(3, 4)}
    np.testing.assert_array_equal(run(after, feeds), run(data, feeds))
