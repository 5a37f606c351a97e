# pyright: basic
"""The frame around the passes: order, limits, forbidden rewrites, names, and what types may be believed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.ir.onnx import parse
from superopt.normalize import normalize
from superopt.normalize.rewriter import RULES
from superopt.search.tidy import tidy
from tests.graphs import assert_same, run
from tests.normalize.models import done, held, model, random_feeds
from tests.normalize.test_folding import onnx_model

pytestmark = pytest.mark.ort

BUSY = model(
    "g (float[n,3] x) => (float[n,3] y) <float[3] k = {1,4,9}, float z = {0}, float[3] u = {5,5,5}> "
    "{ [root] r = Sqrt(k) [zero] a = Add(x, z) [one] b = Exp(a) [two] c = Exp(a) [sum] d = Add(b, c) "
    "[plus] e = Add(d, r) [keep] f = Identity(e) [dead] g = Tanh(x) y = Relu(f) }"
)


def test_what_is_done_and_in_what_order() -> None:
    outcome = held(BUSY)
    assert [(r.name, r.place) for r in outcome.rewrites] == [
        ("dead-node", "dead"),
        ("dead-constant", "u"),
        ("constant-folding", "root"),
        ("add-zero", "zero"),
        ("common-subexpression", "two"),
        ("identity", "keep"),
    ]


def test_a_limit_gives_the_first_rewrites_and_a_model_that_runs() -> None:
    every = done(BUSY).rewrites
    for limit in range(len(every) + 2):
        assert held(BUSY, limit=limit).rewrites == every[:limit]


def test_a_forbidden_rewrite_is_not_made() -> None:
    for rewrite in done(BUSY).rewrites:
        pair = (rewrite.name, rewrite.place)
        outcome = held(BUSY, forbid=[pair])
        assert pair not in [(r.name, r.place) for r in outcome.rewrites]
        assert len(outcome.rewrites) == 5


def test_nothing_done_is_the_same_graph_and_the_same_bytes() -> None:
    data = model("g (float[n] x) => (float[n] y) { a = Exp(x) y = Tanh(a) }")
    parsed = parse(data)
    result = normalize(parsed)
    assert result.graph is parsed.graph
    assert result.rewrites == ()
    tidied = tidy(data)
    assert not tidied.changed
    assert tidied.model is data


def test_tidy_takes_a_file(tmp_path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(BUSY)
    tidied = tidy(path)
    assert tidied.changed
    assert tidied.model == tidy(BUSY).model
    assert [r.name for r in tidied.rewrites] == done(BUSY).names
    feeds = random_feeds(BUSY, 3)
    assert_same(run(BUSY, feeds), run(tidied.model, feeds))


def test_the_same_model_twice_gives_the_same_bytes() -> None:
    assert done(BUSY).after == done(BUSY).after


def test_every_identity_has_a_name_of_its_own() -> None:
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))


def test_a_new_name_avoids_every_name_of_the_model() -> None:
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["c"]),
            helper.make_node("BatchNormalization", ["c", "s", "s", "s", "s"], ["n"]),
            helper.make_node("Relu", ["n"], ["n_weight"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 3])],
        [helper.make_tensor_value_info("n_weight", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(np.ones((2, 1, 1), np.float32), "w"),
            numpy_helper.from_array(np.ones(2, np.float32), "s"),
        ],
    )
    outcome = held(onnx_model(graph))
    assert outcome.constants == ["n_weight_2", "n_bias"]


def test_a_declared_type_does_not_outlive_the_node_it_described() -> None:
    """The file says that m has five elements. It has two, and onnxruntime would believe the file about a constant."""
    data = model("g (float[2] x) => (float[2] y) <float[2] k = {1,4}> { m = Sqrt(k) y = Add(x, m) }")
    proto = onnx.load_from_string(data)
    proto.graph.value_info.append(helper.make_tensor_value_info("m", TensorProto.FLOAT, [5]))
    outcome = done(proto.SerializeToString())
    assert outcome.constants == ["m"]
    feeds = random_feeds(data, 1)
    assert_same(run(data, feeds), run(outcome.after, feeds))


def test_the_default_of_an_input_tells_no_shape() -> None:
    """Reshape by a target that the caller may override: its default decides nothing."""
    data = model(
        "g (float[6] x, int64[2] t) => (int64[2] y) <int64[2] t = {2,3}> { r = Reshape(x, t) s = Shape(r) y = Neg(s) }"
    )
    outcome = held(data)
    assert outcome.rewrites == ()
    assert run(outcome.after, {**random_feeds(data, 1), "t": np.array([3, 2])})[0].tolist() == [-3, -2]


def test_the_declared_shape_of_a_sequence_tells_nothing() -> None:
    graph = helper.make_graph(
        [helper.make_node("SequenceAt", ["q", "i"], ["a"]), helper.make_node("Size", ["a"], ["s"]),
         helper.make_node("Neg", ["s"], ["y"])],
        "g",
        [helper.make_tensor_sequence_value_info("q", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [])],
        [numpy_helper.from_array(np.array(0), "i")],
    )  # fmt: skip
    outcome = done(onnx_model(graph))
    assert outcome.rewrites == ()
    assert run(outcome.after, {"q": [np.ones(5, np.float32)]})[0] == -5  # pyright: ignore[reportArgumentType]


def test_deep_chains_do_not_recurse() -> None:
    nodes = [helper.make_node("Neg" if i % 2 else "Exp", [f"v{i}"], [f"v{i + 1}"]) for i in range(5000)]
    graph = helper.make_graph(
        [*nodes, helper.make_node("Identity", ["v5000"], ["y"])],
        "g",
        [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    assert done(onnx_model(graph)).names == ["identity"]
