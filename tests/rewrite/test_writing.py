# pyright: basic
"""What rewrites write: nodes that the opset has, numbers that the type holds, operators that mean what rules say."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.ir.onnx import parse
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.text import parse_rules
from tests.rewrite.small import every_way, model, numbers
from tests.rewrite.taking import REGISTRY, opened, rules, run

pytestmark = pytest.mark.ort


def test_integers_too_large_for_a_float_stay_what_they_are() -> None:
    (rule,) = parse_rules(
        "rule added-twice\n  given x: [n]  s: real  t: real\n  y = Add(Add(x, (s)), (t))\n  =>\n  y = Add(x, (s + t))"
    )
    large = 2**53 + 1
    data = model(
        "g (int64[3] x) => (int64[n] y) { a = Add(x, s) y = Add(a, t) }",
        s=np.array(large), t=np.array(2),
    )  # fmt: skip
    assert every_way(data, {"x": np.array([0, 1, 2])}, Rules([rule], REGISTRY)) == ["added-twice"]
    wraps = model(
        "g (int64[3] x) => (int64[n] y) { a = Add(x, s) y = Add(a, t) }", s=np.array(2**62), t=np.array(2**62)
    )
    assert every_way(wraps, {"x": np.array([0, 1, 2])}, Rules([rule], REGISTRY)) == []


def test_integers_hold_no_fractions() -> None:
    (rule,) = parse_rules("rule halved\n  given x: [n]\n  y = Add(x, 1)\n  =>\n  y = Mul(Add(Mul(x, 2), 2), 0.5)")
    for kind, dtype, fires in (("int32", np.int32, False), ("float", np.float32, True)):
        data = model(f"g ({kind}[3] x) => ({kind}[n] y) {{ y = Add(x, c) }}", c=np.ones((), dtype))
        assert bool(every_way(data, {"x": np.arange(3, dtype=dtype)}, Rules([rule], REGISTRY))) == fires


def test_operands_that_an_opset_does_not_have_are_not_left_out() -> None:
    """Clip had its bounds as attributes once, which cannot be tensors."""
    text = "g (float[4] x) => (float[n] y) { a = Max(x, l) y = Min(a, h) }"
    feeds = {"x": numbers(4)}
    bounds = {"l": np.array(-0.1, np.float32), "h": np.array(0.1, np.float32)}
    assert "min-max-to-clip" not in every_way(model(text, 9, **bounds), feeds)
    assert "min-max-to-clip" in every_way(model(text, 13, **bounds), feeds)


def test_bounds_that_may_be_nan_become_none_of_clip() -> None:
    """Max and Min pass it on, Clip does not."""
    text = "g (float[4] x, float l, float h) => (float[n] y) { a = Max(x, l) y = Min(a, h) }"
    feeds = {"x": numbers(4), "l": np.array(-0.1, np.float32), "h": np.array(0.1, np.float32)}
    assert not [name for name in every_way(model(text, 13), feeds) if name.endswith("clip")]


def test_inputs_that_an_opset_demands_are_not_left_out() -> None:
    """Gemm had to have a C before opset 11."""
    text = "g (float[2, 3] x) => (float[m, n] y) { t = Transpose<perm=[1, 0]>(w) y = Gemm(x, t, c) }"
    for opset in (9, 11, 17):
        every_way(model(text, opset, w=numbers(4, 3), c=np.zeros(4, np.float32)), {"x": numbers(2, 3)})


@pytest.mark.parametrize("opset", [11, 13, 17, 18, 21])
def test_pads_are_written_as_the_opset_has_them(opset: int) -> None:
    """A rule pads one axis; Pad takes axes from opset 18 on."""
    data = model(
        "g (float[2, 3, 4] x) => (float[a, b, c] y) { p = Pad(x, pads, v) y = Tanh(p) }", opset,
        pads=np.array([0, 2, 0, 0, 1, 0]), v=np.full((), 0.5, np.float32),
    )  # fmt: skip
    assert "pad-through-tanh" in every_way(data, {"x": numbers(2, 3, 4)})


def test_two_random_numbers_stay_two() -> None:
    """After relu(relu x) = relu x both read the same; they are still drawn twice."""
    data = model(
        "g (float[50] x) => (float[n] y) { a = Relu(x) b = Relu(a) "
        "r = RandomUniformLike(a) s = RandomUniformLike(b) d = Sub(r, s) y = Abs(d) }"
    )
    start = opened(data)
    (found,) = start.matches(start.piece, rules("relu-relu"))
    after = parse(start.exported(start.take(start.piece, found))).graph
    assert sum(node.op == "RandomUniformLike" for node in after.nodes) == 2
    (y,) = run(start.exported(start.take(start.piece, found)), {"x": numbers(50)})
    assert y.max() > 0


def test_a_random_number_is_no_weight() -> None:
    data = model(
        "g (float[3] x) => (float[n] y) { r = RandomUniformLike(c) a = Add(x, r) y = Mul(a, s) }",
        c=numbers(3), s=numbers(3),
    )  # fmt: skip
    start = opened(data)
    for found in start.matches(start.piece):
        after = parse(start.exported(start.take(start.piece, found))).graph
        assert sum(node.op == "RandomUniformLike" for node in after.nodes) == 1


def test_an_operator_that_the_model_defines_means_what_the_model_says() -> None:
    """A function of its own called Gelu in onnxruntime's domain: neither read as Gelu nor written for it."""
    body = helper.make_function(
        "com.microsoft", "Gelu", ["x"], ["y"], [helper.make_node("Neg", ["x"], ["y"])], [helper.make_opsetid("", 17)]
    )
    nodes = [
        helper.make_node("Gelu", ["x"], ["g"], domain="com.microsoft"),
        helper.make_node("Div", ["x", "root"], ["a"]),
        helper.make_node("Erf", ["a"], ["b"]),
        helper.make_node("Add", ["b", "one"], ["c"]),
        helper.make_node("Mul", ["x", "half"], ["d"]),
        helper.make_node("Mul", ["d", "c"], ["y"]),
    ]
    weights = {"root": np.sqrt(2), "one": 1, "half": 0.5}
    constants = [numpy_helper.from_array(np.asarray(v, np.float32), k) for k, v in weights.items()]
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in ("x", "y")]
    graph = helper.make_graph(
        nodes, "g", ports[:1], [*ports[1:], helper.make_tensor_value_info("g", TensorProto.FLOAT, [4])], constants
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    with_own = helper.make_model(graph, opset_imports=imports, functions=[body], ir_version=8)
    without = helper.make_model(graph, opset_imports=imports, ir_version=8)
    without.graph.node[0].CopyFrom(helper.make_node("Neg", ["x"], ["g"]))
    found = every_way(with_own.SerializeToString(), {"x": numbers(4)})
    assert found
    assert not any("gelu" in name for name in found)
    assert "gelu-to-microsoft-gelu" in every_way(without.SerializeToString(), {"x": numbers(4)})


def test_only_standard_operators_where_others_are_not_allowed() -> None:
    data = model("g (float[2, 3] x) => (float[m, n] y) { s = Sigmoid(x) y = Mul(x, s) }")
    for contrib in (True, False):
        start = opened(data, Vocabulary(contrib=contrib))
        domains = {
            node.domain
            for found in start.matches(start.piece)
            for node in start.take(start.piece, found).nodes
        }  # fmt: skip
        assert ("com.microsoft" in domains) == contrib
