# pyright: basic
"""Constant folding: by values and by types, within the cap, and never what must stay."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.ir.onnx import parse
from superopt.normalize import evaluation, folding, normalize
from superopt.normalize.journal import constant_bytes
from tests.normalize.models import done, held, model

pytestmark = pytest.mark.ort


def test_a_chain_becomes_one_constant_under_its_own_name() -> None:
    outcome = held(
        model("g (float[2] x) => (float[2] y) <float[2] c = {1,4}> { a = Sqrt(c) b = Neg(a) y = Add(x, b) }")
    )
    assert outcome.names == ["constant-folding"] * 2
    assert outcome.ops == ["Add"]
    assert outcome.constants == ["b"]
    assert numpy_helper.to_array(outcome.proto.graph.initializer[0]).tolist() == [-1, -2]


def test_equal_results_share_one_constant() -> None:
    outcome = held(
        model(
            "g (float[2] x) => (float[2] y) <float[2] c = {1,4}, float[2] d = {-1,-4}> "
            "{ a = Neg(c) b = Abs(d) e = Neg(b) f = Add(x, a) y = Mul(f, e) }"
        )
    )
    assert len(outcome.constants) == 1
    assert outcome.ops == ["Add", "Mul"]


def test_every_spelling_of_a_constant_is_understood() -> None:
    outcome = held(
        model(
            "g (float[2] x) => (float[2] y) { i = Constant<value_ints=[0,1]>() j = Constant<value_int=1>() "
            "f = Constant<value_float=2.0>() g = Constant<value_floats=[1.0,3.0]>() "
            "a = Add(i, j) b = Cast<to=1>(a) c = Mul(b, f) d = Add(c, g) y = Add(x, d) }"
        )
    )
    assert outcome.ops == ["Add"]


def test_strings_fold() -> None:
    outcome = held(
        model(
            'g (float[1] x) => (string[2] y, float[1] z) <string[2] s = {"b","a"}, int64[2] i = {1,0}> '
            "{ a = Gather(s, i) y = Identity(a) z = Relu(x) }"
        )
    )
    assert outcome.ops == ["Identity", "Relu"]
    assert outcome.constants == ["a"]


@pytest.mark.parametrize("code", [10, 16])
def test_small_floats_are_rounded_at_every_node(code: int) -> None:
    """In float16 (10) each product is, in bfloat16 (16) casts are all the CPU has. What onnxruntime itself leaves out
    of this between two nodes depends on the processor."""
    work = "Mul" if code == 10 else "Identity"
    arguments = "(h, h)" if code == 10 else "(h)"
    outcome = done(
        model(
            f"g (float[3] x) => (float[3] y) <float[3] c = {{0.1, 3.3, 70}}> "
            f"{{ h = Cast<to={code}>(c) m = {work}{arguments} d = Cast<to=1>(m) y = Add(x, d) }}"
        )
    )
    assert outcome.ops == ["Add"]
    small = np.array([0.1, 3.3, 70]).astype(np.float16 if code == 10 else ml_dtypes.bfloat16)
    expected = (np.multiply(small, small) if code == 10 else small).astype(np.float32)
    [folded] = outcome.proto.graph.initializer
    np.testing.assert_array_equal(numpy_helper.to_array(folded), expected)


@pytest.mark.parametrize(
    ("moving", "expected"),
    [
        ("Where(m, h, k)", [0.5, 64.0, 2.0]),
        ("Expand(Where(m, h, k), s)", [[0.5, 64.0, 2.0]] * 2),
        ("Tile(h, r)", [0.5, 3.0, 2.0] * 2),
    ],
)
def test_moving_bfloat16_takes_no_kernel(moving: str, expected: list) -> None:
    """onnxruntime's CPU provider cannot run them in this type; the result is read in float32."""
    parts = moving.replace("Where(m, h, k), s", "w, s")
    nodes = ("w = Where(m, h, k) " if parts != moving else "") + f"v = {parts}"
    shape = ",".join(map(str, np.shape(expected)))
    outcome = done(
        model(
            f"g (float[{shape}] x) => (float[{shape}] y) <float[3] a = {{0.5, 3, 2}}, float[1] b = {{64}}, "
            f"bool[3] m = {{1, 0, 1}}, int64[2] s = {{2, 3}}, int64[1] r = {{2}}> "
            f"{{ h = Cast<to=16>(a) k = Cast<to=16>(b) {nodes} d = Cast<to=1>(v) y = Add(x, d) }}"
        )
    )
    assert outcome.ops == ["Add"]
    (constant,) = outcome.proto.graph.initializer
    assert numpy_helper.to_array(constant).tolist() == expected


def test_nan_is_a_value_like_any_other() -> None:
    outcome = held(model("g (float[2] x) => (float[2] y) <float[2] c = {-1,4}> { a = Sqrt(c) y = Add(x, a) }"))
    assert outcome.ops == ["Add"]


def test_shape_and_size_of_known_types() -> None:
    outcome = held(
        model(
            "g (float[2,3] x) => (int64[3] y) { s = Shape(x) n = Size(x) a = Constant<value_ints=[0]>() "
            "u = Unsqueeze(n, a) c = Concat<axis=0>(s, u) y = Neg(c) }"
        )
    )
    assert outcome.names.count("static-shape") == 2
    assert outcome.ops == ["Neg"]


def test_one_known_dim_of_an_open_shape() -> None:
    outcome = held(
        model(
            "g (float[n,3] x) => (int64[1] y, int64[1] z, int64[1] w) <int64[1] i = {1}, int64[1] j = {0}, "
            "int64[1] e = {2}> { s = Shape(x) a = Gather(s, i) b = Gather(s, j) c = Slice(s, i, e) "
            "y = Neg(a) z = Neg(b) w = Abs(c) }"
        )
    )
    assert outcome.names.count("static-shape") == 2
    assert outcome.ops == ["Shape", "Gather", "Neg", "Neg", "Abs"]


def test_part_of_a_shape() -> None:
    outcome = held(
        model("g (float[n,3,4] x) => (int64[2] y) { s = Shape<start=-2>(x) a = Shape<start=0,end=1>(x) y = Neg(s) }")
    )
    assert outcome.ops == ["Neg"]


def test_a_shape_that_is_open_stays() -> None:
    graph = "g (float[n,3] x) => (int64[2] y) { s = Shape(x) y = Neg(s) }"
    assert held(model(graph)).rewrites == ()


def test_a_type_learned_by_folding_is_used() -> None:
    """The target goes through floating point, where onnx does not follow: only its folded value tells the shape."""
    outcome = held(
        model(
            "g (float[n,6] x) => (int64[2] y) <float[2] t = {2.0, 3.0}> "
            "{ c = Cast<to=7>(t) r = Reshape(x, c) s = Shape(r) y = Neg(s) }"
        ),
        {"x": np.ones((1, 6), np.float32)},
    )
    assert outcome.ops == ["Neg"]


def test_quantized_weights_stay_quantized() -> None:
    outcome = held(
        model(
            "g (float[2] x) => (float[2] y) <int8[2] w = {3,4}, float s = {0.5}, int8 z = {0}> "
            "{ d = DequantizeLinear(w, s, z) y = Add(x, d) }"
        )
    )
    assert outcome.rewrites == ()


def test_a_bomb_is_not_evaluated() -> None:
    outcome = held(
        model(
            "g (float[1] x) => (float y) <int64[2] s = {4096,4096}> "
            "{ c = ConstantOfShape(s) r = ReduceSum<keepdims=0>(c) t = ReduceSum<keepdims=0>(x) y = Add(r, t) }"
        )
    )
    assert outcome.rewrites == ()
    assert len(outcome.after) < 1000


@pytest.mark.parametrize(
    "graph",
    [
        "<float[1] c = {1}, int64[2] s = {4096,4096}> { b = Expand(c, s) m = ReduceMax(b) y = Add(x, m) }",
        "<float[1,1] c = {1}, int64[2] s = {4096,4096}> { b = Tile(c, s) m = ReduceMax(b) y = Add(x, m) }",
        "<float c = {0}, float e = {9e6}, float d = {1}> { b = Range(c, e, d) m = ReduceMax(b) y = Add(x, m) }",
        "<float[1] c = {1}, int64[2] s = {0,9000000}> { b = Pad(c, s) m = ReduceMax(b) y = Add(x, m) }",
        "<float[1,1] c = {1}, float[2] s = {4096,4096}> { b = Resize(c, , s) m = ReduceMax(b) y = Add(x, m) }",
    ],
)
def test_other_bombs(graph: str) -> None:
    assert done(model(f"g (float[1] x) => (float[a,b] y) {graph}")).rewrites == ()


def test_what_is_freed_pays_for_what_is_made() -> None:
    weight = np.random.default_rng(0).normal(size=(1024, 512)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("Transpose", ["w"], ["t"], "turn"), helper.make_node("MatMul", ["x", "t"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 512])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1024])],
        [numpy_helper.from_array(weight, "w")],
    )
    data = onnx_model(graph)
    assert held(data, growth_cap=0).names == ["constant-folding"]
    graph.node.append(helper.make_node("ReduceSum", ["w"], ["z"], keepdims=0))
    graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, []))
    assert held(onnx_model(graph)).names == []  # the weight would be there twice


def test_memory_is_held_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is freed on disk pays for the file, not for memory."""
    monkeypatch.setattr(folding, "MOST_HELD", 16)
    graph = "g (float[2] x) => (float[2] y) <float[2] k = {1,4}, float[3] j = {1,4,9}> { a = Sqrt(k) b = Sqrt(j) "
    outcome = held(model(graph + "m = ReduceSum(b) c = Add(x, a) y = Add(c, m) }"), growth_cap=1 << 20)
    assert [r.place for r in outcome.rewrites] == ["Sqrt:a"]


def test_what_results_are_made_of_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three operators one after the other on a weight of 16 bytes: no more than 16 are there at any time."""
    monkeypatch.setattr(folding, "MOST_HELD", 16)
    body = "a = Sqrt(k) b = Neg(a) c = Exp(b) y = Add(x, c)"
    outcome = held(model(f"g (float[4] x) => (float[4] y) <float[4] k = {{1,4,9,16}}> {{ {body} }}"))
    assert outcome.ops == ["Add"]


def test_what_only_its_shape_is_asked_of_is_held_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "MOST_HELD", 36)
    body = "a = Sqrt(k) s = Shape(a) b = Exp(k) t = Shape(b) c = Reshape(x, s) y = Reshape(c, t)"
    outcome = done(model(f"g (float[4] x) => (float[4] y) <float[4] k = {{1,4,9,16}}> {{ {body} }}"))
    assert [r.place for r in outcome.rewrites if r.name == "constant-folding"] == ["Sqrt:a"]


def test_halves_are_dropped_once_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is rounded in a session of its own; what earlier sessions made need not stay."""
    there: list[int] = []

    def runnable(model, nodes, tensors, outputs):
        there.append(len(tensors))
        return real(model, nodes, tensors, outputs)

    real = evaluation.runnable
    monkeypatch.setattr(evaluation, "runnable", runnable)
    body = "a = Sqrt(k) b = Neg(a) c = Exp(b) d = Neg(c) e = Sigmoid(d) y = Add(x, e)"
    outcome = held(model(f"g (float16[4] x) => (float16[4] y) <float16[4] k = {{1,4,9,16}}> {{ {body} }}"))
    assert outcome.ops == ["Add"]
    assert len(there) >= 5
    assert max(there) == 1


def test_there_is_an_end_to_what_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "MOST_COMPUTED", 32)
    body = "a = Sqrt(k) b = Neg(a) c = Exp(b) y = Add(x, c)"
    outcome = done(model(f"g (float[4] x) => (float[4] y) <float[4] k = {{1,4,9,16}}> {{ {body} }}"))
    assert outcome.ops == ["Exp", "Add"]


def test_growth_is_held_to_the_cap_over_the_whole_model() -> None:
    """Forty vectors of 100 KiB, made from nothing: ten fit 1 MiB."""
    nodes = []
    for i in range(40):
        nodes.append(helper.make_node("Tile", [f"c{i}", "s"], [f"e{i}"], f"tile{i}"))
        nodes.append(helper.make_node("Add", ["x" if i == 0 else f"a{i - 1}", f"e{i}"], [f"a{i}"]))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [25600])],
        [helper.make_tensor_value_info("a39", TensorProto.FLOAT, [25600])],
        [
            numpy_helper.from_array(np.array([25600]), "s"),
            *(numpy_helper.from_array(np.array([1.0 + i], np.float32), f"c{i}") for i in range(40)),
        ],
    )
    parsed = parse(onnx_model(graph))
    result = normalize(parsed)
    assert len(result.rewrites) == 10
    assert constant_bytes(result.graph) - constant_bytes(parsed.graph) <= 1 << 20
    assert len(normalize(parsed, growth_cap=0).rewrites) == 0


def test_integer_division_by_zero_is_never_tried() -> None:
    outcome = done(
        model("g (int64[1] x) => (int64[1] y) <int64[1] a = {4}, int64[1] b = {0}> { c = Div(a, b) y = Add(x, c) }")
    )
    assert outcome.rewrites == ()
    outcome = held(
        model("g (int64[1] x) => (int64[1] y) <int64[1] a = {4}, int64[1] b = {2}> { c = Div(a, b) y = Add(x, c) }")
    )
    assert outcome.ops == ["Add"]


def test_thousands_of_nodes_open_few_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    original = evaluation.evaluate
    monkeypatch.setattr(evaluation, "evaluate", lambda *a: opened.append(1) or original(*a))
    outcome = done(many_constants(2000, failing=()))
    assert outcome.names.count("constant-folding") == 2000
    assert outcome.ops == ["Add"] * 2000
    assert len(opened) == 1


def test_a_node_that_cannot_be_evaluated_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    original = evaluation.evaluate
    monkeypatch.setattr(evaluation, "evaluate", lambda *a: opened.append(1) or original(*a))
    outcome = done(many_constants(200, failing=(17, 150)))
    assert outcome.names.count("constant-folding") == 198
    assert {n.op_type for n in outcome.proto.graph.node} == {"Add", "Gather"}
    assert len(opened) < 40


def many_constants(count: int, failing: tuple[int, ...]) -> bytes:
    """x plus many folded constants; a failing one reads past the end of a table."""
    nodes, constants = [], [numpy_helper.from_array(np.array([9]), "far")]
    previous = "x"
    for i in range(count):
        constants.append(numpy_helper.from_array(np.array([1.0 + i], np.float32), f"c{i}"))
        if i in failing:
            nodes.append(helper.make_node("Gather", [f"c{i}", "far"], [f"k{i}"]))
        else:
            nodes.append(helper.make_node("Neg", [f"c{i}"], [f"k{i}"]))
        nodes.append(helper.make_node("Add", [previous, f"k{i}"], [f"s{i}"]))
        previous = f"s{i}"
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info(previous, TensorProto.FLOAT, [1])],
        constants,
    )
    return onnx_model(graph)


def test_what_cannot_be_evaluated_is_not_folded_whoever_reads_it() -> None:
    """The table has no entry 9, and the shape of what is read there is all that is asked for."""
    graph = "g (float[2] x) => (float[2] y) <float[3] k = {1,2,3}, int64[2] far = {9,9}> { t = Gather(k, far) "
    outcome = done(model(graph + "s = Shape(t) y = Reshape(x, s) }"))
    assert "constant-folding" not in outcome.names


def onnx_model(graph: onnx.GraphProto, opset: int = 17, ir: int = 8) -> bytes:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir).SerializeToString()
