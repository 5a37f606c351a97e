# pyright: basic
"""Straight to where fusing leads."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from superopt.ir.onnx import parse
from superopt.normalize import normalize
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.whole import piece_of
from superopt.search.condense import condensed
from superopt.search.explore import Limits, explore
from tests.search.test_ablation import price, with_gelu
from tests.search.test_hunt import BOOK

pytestmark = pytest.mark.ort


def plain() -> onnx.ModelProto:
    """Nothing here can be fused."""
    nodes = [helper.make_node("Relu", ["x"], ["v0"])]
    nodes += [helper.make_node("MatMul", ["v0", "w"], ["y"])]
    ports = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [4, 4]) for n in "xy"]
    weight = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [weight])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def opened(proto: onnx.ModelProto):
    model = parse(proto.SerializeToString())
    rewriter = Rewriter(BOOK.registry, model.opset, Vocabulary(contrib=True), model.functions)
    return piece_of(normalize(model).graph, rewriter.constants), rewriter


def test_all_that_can_be_fused_is_whatever_is_predicted() -> None:
    start, rewriter = opened(with_gelu())
    found = condensed(start, BOOK.rules, rewriter, lambda piece: -len(piece.members), lambda: False)
    assert found is not None
    assert sorted(node.op for node in found.piece.members) == ["Gelu", "MatMul"]
    assert found.steps[-1].after is found.piece


def test_a_graph_that_may_not_be_is_no_way_to_another() -> None:
    start, rewriter = opened(with_gelu())
    dear = {"Gelu", "BiasGelu", "FastGelu"}

    def without_gelu(piece) -> float:
        return float("inf") if any(node.op in dear for node in piece.members) else 1.0

    found = condensed(start, BOOK.rules, rewriter, without_gelu, lambda: False)
    assert found is not None
    assert "Erf" in {node.op for node in found.piece.members}


def test_where_nothing_can_be_fused_there_is_nothing() -> None:
    start, rewriter = opened(plain())
    assert condensed(start, BOOK.rules, rewriter, price, lambda: False) is None


def test_nothing_is_done_when_time_is_up() -> None:
    start, rewriter = opened(with_gelu())
    assert condensed(start, BOOK.rules, rewriter, price, lambda: True) is None


def test_the_search_tells_of_it_beside_what_it_found() -> None:
    start, rewriter = opened(with_gelu())
    found = explore(start, BOOK.rules, rewriter, price, Limits(1.05, 3, lambda: False))
    assert not found.exhausted, "three graphs are not enough to get there by cost"
    assert found.condensed is not None
    assert len(found.condensed.piece.members) == 2
