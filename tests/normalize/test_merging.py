# pyright: basic
"""Equal nodes and equal constants become one; dead ones go; what others rely on stays."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.ir.onnx import parse
from superopt.ir.tensor import Tensor
from superopt.normalize import normalize
from tests.normalize.models import done, held, model
from tests.normalize.test_folding import onnx_model

pytestmark = pytest.mark.ort


def test_equal_nodes_become_one_all_the_way() -> None:
    outcome = held(
        model("g (float[n] x) => (float[n] y) { a = Exp(x) b = Exp(x) c = Tanh(a) d = Tanh(b) y = Add(c, d) }")
    )
    assert outcome.names == ["common-subexpression"] * 2
    assert outcome.ops == ["Exp", "Tanh", "Add"]


def test_equal_nodes_of_unknown_size_become_one() -> None:
    """Inference names the open dim of each result differently."""
    outcome = held(model("g (float[n] x) => (int64[1,m] y) { a = NonZero(x) b = NonZero(x) y = Add(a, b) }"))
    assert outcome.ops == ["NonZero", "Add"]


@pytest.mark.parametrize(
    "graph",
    [
        "g (float[n] x) => (float[n] y) { a = Elu<alpha=1.0>(x) b = Elu<alpha=2.0>(x) y = Add(a, b) }",
        (
            "g (float[n] x) => (float[n] y) "
            "{ a = Cast<to=11>(x) b = Cast<to=10>(x) c = Cast<to=1>(b) d = Cast<to=11>(c) "
            "e = Add(a, d) y = Cast<to=1>(e) }"
        ),
        "g (float[n] x, float[n] z) => (float[n] y) { a = Sub(x, z) b = Sub(z, x) y = Mul(a, b) }",
    ],
)
def test_nodes_that_differ_stay_two(graph: str) -> None:
    assert "common-subexpression" not in held(model(graph)).names


def test_nodes_with_other_optional_outputs_stay_two() -> None:
    outcome = held(
        model(
            "g (float[1,1,4] x) => (float[1,1,3] y, int64[1,1,3] z) "
            "{ a = MaxPool<kernel_shape=[2]>(x) b, i = MaxPool<kernel_shape=[2]>(x) y = Add(a, b) z = Neg(i) }"
        )
    )
    assert outcome.rewrites == ()


def test_equal_tensors_in_attributes_are_equal() -> None:
    outcome = held(
        model(
            "g (int64[1] x) => (float[n] y) { a = ConstantOfShape<value = float[1] {2}>(x) "
            "b = ConstantOfShape<value = float[1] {2}>(x) c = ConstantOfShape<value = float[1] {3}>(x) "
            "d = Add(a, b) y = Add(d, c) }"
        ),
        {"x": np.array([4])},
    )
    assert outcome.names == ["common-subexpression"]


def test_optional_inputs_that_are_left_out_are_part_of_the_node() -> None:
    outcome = held(
        model(
            "g (float[n] x) => (float[n] y) <float m = {1}> "
            '{ a = Clip(x, "", m) b = Clip(x, m) c = Clip(x, "", m) d = Add(a, b) y = Add(d, c) }'
        )
    )
    assert outcome.names == ["common-subexpression"]
    assert outcome.ops.count("Clip") == 2


def test_pairs_around_quantized_operators_stay() -> None:
    outcome = held(
        model(
            "g (float[n] x) => (float[n] y) <float s = {0.5}, uint8 z = {3}> "
            "{ a = QuantizeLinear(x, s, z) b = QuantizeLinear(x, s, z) c = DequantizeLinear(a, s, z) "
            "d = DequantizeLinear(b, s, z) y = Add(c, d) }"
        )
    )
    assert outcome.rewrites == ()


def test_equal_initializers_become_one() -> None:
    outcome = held(
        model(
            "g (float[2] x) => (float[2] y) <float[2] a = {1,2}, float[2] b = {1,2}, float[2] c = {1,3}> "
            "{ p = Add(x, a) q = Mul(p, b) y = Sub(q, c) }"
        )
    )
    assert outcome.names == ["share-constants"]
    assert outcome.constants == ["a", "c"]


def test_equal_bytes_of_another_type_stay_two() -> None:
    outcome = held(
        model(
            "g (float[1] x, int32[1] z) => (float[1] y, int32[1] w) <float[1] a = {0}, int32[1] b = {0}> "
            "{ y = Sub(a, x) w = Sub(b, z) }"
        )
    )
    assert outcome.rewrites == ()


def test_an_initializer_that_is_a_result_stays() -> None:
    outcome = held(
        model(
            "g (float[2] x) => (float[2] y, float[2] b) <float[2] a = {1,2}, float[2] b = {1,2}> "
            "{ p = Add(x, a) y = Mul(p, b) }"
        )
    )
    assert outcome.rewrites == ()


def test_an_initializer_that_the_caller_may_override_is_no_constant() -> None:
    data = model(
        "g (float[2] x, float[2] a) => (float[2] y) <float[2] a = {0,0}, float[2] b = {0,0}> "
        "{ n = Neg(a) p = Add(x, n) y = Sub(b, p) }"
    )
    outcome = held(data)
    assert outcome.rewrites == ()
    held(data, {"a": np.array([5, 6], np.float32)})


def test_large_weights_that_differ_are_not_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Tensor] = []
    original = Tensor.digest.func
    monkeypatch.setattr(Tensor, "digest", property(lambda self: hashed.append(self) or original(self)))
    rng = np.random.default_rng(0)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "a"], ["p"]), helper.make_node("MatMul", ["p", "b"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64])],
        [numpy_helper.from_array(rng.normal(size=(64, 64)).astype(np.float32), name) for name in "ab"],
    )
    assert normalize(parse(onnx_model(graph))).rewrites == ()
    assert hashed == []


def test_dead_nodes_and_constants_go() -> None:
    outcome = held(
        model(
            "g (float[2] x, float[2] unused) => (float[2] y) <float[2] a = {1,2}, float[2] b = {3,4}> "
            "{ p = Add(x, a) q = Exp(p) y = Relu(x) }"
        )
    )
    assert [(r.name, r.place) for r in outcome.rewrites] == [("dead-node", "Exp:q"), ("dead-constant", "b")]
    assert outcome.ops == ["Relu"]
    assert outcome.constants == []


def test_before_ir_version_4_listed_initializers_stay() -> None:
    outcome = held(
        model(
            "g (float[2] x, float[2] a, float[2] b) => (float[2] y) <float[2] a = {1,2}, float[2] b = {1,2}> "
            "{ p = Neg(a) y = Add(x, p) }",
            opset=9,
            ir=3,
        )
    )
    assert outcome.names == ["constant-folding"]
    assert outcome.constants == ["a", "b"]
    assert [n.op_type for n in outcome.proto.graph.node] == ["Constant", "Add"]


def test_a_node_keeps_its_record() -> None:
    data = model("g (float[n] x) => (float[n] y) { [i] a = Identity(x) [r] y = Relu(a) }")
    proto = helper.make_model(done(data).proto.graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    assert proto.graph.node[0].name == "r"
    parsed = parse(data)
    parsed.proto.graph.node[1].doc_string = "why"
    outcome = done(parsed.proto.SerializeToString())
    assert outcome.proto.graph.node[0].doc_string == "why"
    assert list(outcome.proto.graph.node[0].input) == ["x"]
