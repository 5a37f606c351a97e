# pyright: basic
"""What pays most at once may stand in the way of more."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from superopt.rewrite.rewriter import Rules
from superopt.rewrite.ruleset import SHIPPED, load_rules
from superopt.search import explore as exploring
from superopt.search.explore import Limits, explore
from tests.search.test_condense import opened
from tests.search.test_hunt import BOOK

pytestmark = pytest.mark.ort


@pytest.fixture(autouse=True)
def from_the_start_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """This is about how a search goes on; the shortest ways down get here by luck."""
    monkeypatch.setattr(exploring, "_ends", lambda *_: ())


MAPS = 4
FOUR = "gates-matmul-matmul-matmul-matmul-to-concat-matmul-split-2264"
SIDE_PATH = "gates-matmul-add-matmul-matmul-to-matmul-add-matmul-add-1f6c"
ADDED_UP = ("linear-matmul-matmul-add-to-add-matmul-44fe", "linear-matmul-matmul-add-to-add-matmul-961e")
SIDE_BY_SIDE = "linear-matmul-matmul-to-concat-matmul-split-d33b"


def with_side_paths() -> onnx.ModelProto:
    """Affine maps of one input, each with a low-rank path beside it: x·w + b + (x·a)·c"""
    rng = np.random.default_rng(0)
    nodes, weights, outputs = [], [], []
    for k in range(MAPS):
        for name, shape in (("w", (8, 8)), ("a", (8, 2)), ("c", (2, 8)), ("b", (8,))):
            weights.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), f"{name}{k}"))
        nodes += [
            helper.make_node("MatMul", ["x", f"w{k}"], [f"p{k}"]),
            helper.make_node("Add", [f"p{k}", f"b{k}"], [f"q{k}"]),
            helper.make_node("MatMul", ["x", f"a{k}"], [f"r{k}"]),
            helper.make_node("MatMul", [f"r{k}", f"c{k}"], [f"s{k}"]),
            helper.make_node("Add", [f"q{k}", f"s{k}"], [f"y{k}"]),
        ]
        outputs.append(helper.make_tensor_value_info(f"y{k}", onnx.TensorProto.FLOAT, [4, 8]))
    ports = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4, 8])]
    graph = helper.make_graph(nodes, "g", ports, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def launches(piece) -> float:
    return sum(10.0 if node.op == "MatMul" else 1.0 for node in piece.members)


def cheapest(detours: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(exploring, "DETOURS", detours)
    start, rewriter = opened(with_side_paths())
    wanted = [rule for rule in load_rules([SHIPPED / "generated" / "gates.rules"]) if rule.name in (FOUR, SIDE_PATH)]
    found = explore(start, Rules(wanted, BOOK.registry), rewriter, launches, Limits(1.05, 20, lambda: False))
    return min(found.candidates, key=lambda candidate: candidate.cost)


def test_products_that_become_one_do_not_keep_their_side_paths_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    straight = cheapest(0, monkeypatch)
    assert any(step.match.pattern.rule.name == FOUR for step in straight.steps), "merging products pays most at once"
    best = cheapest(1, monkeypatch)
    assert [step.match.pattern.rule.name for step in best.steps] == [SIDE_PATH] * MAPS
    assert best.cost < straight.cost


def summed() -> onnx.ModelProto:
    """((x·w0 + x·w1) + x·w2) + x·w3"""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((8, 8)).astype(np.float32), f"w{k}") for k in range(MAPS)]
    nodes = [helper.make_node("MatMul", ["x", f"w{k}"], [f"p{k}"]) for k in range(MAPS)]
    sums = ["p0", *(f"s{k}" for k in range(1, MAPS - 1)), "y"]
    nodes += [helper.make_node("Add", [sums[k - 1], f"p{k}"], [sums[k]]) for k in range(1, MAPS)]
    ports = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4, 8])]
    result = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [4, 8])]
    graph = helper.make_graph(nodes, "g", ports, result, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_what_is_added_up_next_is_not_merged_side_by_side_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last two products touch nothing of the first two, which are added up first, and merging them pays."""
    start, rewriter = opened(summed())
    shipped = load_rules([SHIPPED / "generated" / "linear.rules"])
    wanted = Rules([rule for rule in shipped if rule.name in (*ADDED_UP, SIDE_BY_SIDE)], BOOK.registry)
    assert len(wanted) == 3

    def best() -> float:
        found = explore(start, wanted, rewriter, launches, Limits(1.05, 16, lambda: False))
        return min(candidate.cost for candidate in found.candidates)

    assert best() == launches_of(products=1, others=0)
    monkeypatch.setattr(exploring._Search, "_goes_along", lambda self, child, current, leading, most: True)
    assert best() > launches_of(products=1, others=0), "whatever pays is made together: this test would not tell"


def launches_of(products: int, others: int) -> float:
    return 10.0 * products + others
