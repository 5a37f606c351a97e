# pyright: basic
"""Ifs whose condition is known: the branch takes the place of the If, and everything else stays what it was."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from superopt.ir.onnx import parse
from superopt.runtime.library import errors as refusals
from tests.graphs import run
from tests.normalize.models import counts, done, held, model

pytestmark = pytest.mark.ort

BRANCHES = (
    "<then_branch = t () => (float[4] a) { [neg] n = Neg(x) a = Exp(n) }, "
    "else_branch = e () => (float[4] b) { [abs] m = Abs(x) b = Sqrt(m) }>"
)


@pytest.mark.parametrize(("truth", "ops"), [(1, ["Neg", "Exp"]), (0, ["Abs", "Sqrt"])])
def test_a_constant_condition(truth: int, ops: list[str]) -> None:
    outcome = held(
        model(f"g (float[4] x) => (float[4] y) <bool c = {{{truth}}}> {{ [choose] z = If(c){BRANCHES} y = Relu(z) }}")
    )
    assert outcome.ops == [*ops, "Relu"]
    [rewrite] = outcome.rewrites
    assert (rewrite.name, rewrite.place, rewrite.proof) == ("if-known", "choose", "by definition")
    assert rewrite.detail == ("then_branch: the condition is true" if truth else "else_branch: the condition is false")
    nodes = outcome.proto.graph.node
    assert nodes[0].name == ("neg" if truth else "abs")
    assert nodes[0].output == (["n"] if truth else ["m"])
    assert nodes[1].output == ["z"]


@pytest.mark.parametrize(
    "condition",
    [
        "k = Size(s) c = Equal(k, four)",
        "h = Shape(w) d = Gather(h, one) c = Equal(d, four)",
        "h = Shape(w) d = Gather(h, one) e = Cast<to=9>(d) i = Not(e) c = Not(i)",
        "h = Shape(w) r = Size(h) e = Equal(r, four) c = Not(e)",
        "h = Shape(w) d = Slice(h, ones, twos) q = Squeeze(d, zeros) c = Equal(q, four)",
    ],
)
def test_a_condition_that_types_decide(condition: str) -> None:
    outcome = held(
        model(
            "g (float[4] x, float[2,2] s, float[n,4] w) => (float[4] y) "
            "<int64 four = {4}, int64 one = {1}, int64[1] ones = {1}, int64[1] twos = {2}, int64[1] zeros = {0}> "
            f"{{ {condition} y = If(c){BRANCHES} }}"
        )
    )
    assert outcome.ops == ["Neg", "Exp"]
    assert outcome.constants == []


@pytest.mark.parametrize(
    "graph",
    [
        "g (float[4] x, bool c) => (float[4] y) { y = If(c)",
        "g (float[4] x, bool c) => (float[4] y) <bool c = {1}> { y = If(c)",
        "g (float[4] x, float[n] w) => (float[4] y) <int64 four = {4}> { k = Size(w) c = Equal(k, four) y = If(c)",
        "g (float[4] x) => (float[4] y) <float zero = {0}> { s = ReduceSum<keepdims=0>(x) c = Less(s, zero) y = If(c)",
    ],
)
def test_an_unknown_condition_is_left_alone(graph: str) -> None:
    """The second is a default that the caller may override."""
    outcome = held(model(f"{graph}{BRANCHES} }}"))
    assert "If" in outcome.ops
    assert "if-known" not in outcome.names


def test_what_decides_an_if_that_stays_is_not_folded() -> None:
    data = model(
        "g (float[4] x) => (float[4] y) <int64 four = {4}> "
        f"{{ k = Size(x) c = Equal(k, four) [choose] y = If(c){BRANCHES} }}"
    )
    assert done(data, forbid=[("if-known", "choose")]).rewrites == ()
    assert done(data, limit=0).same_graph


@pytest.mark.parametrize("ir", [3, 8])
def test_results_that_are_outer_values_constants_or_twice_the_same(ir: int) -> None:
    outcome = held(
        model(
            "g (float[2] x) => (float[2] p, float[2] q, float[2] r, float[2] s) { "
            "c = Constant<value = bool {1}>() p, q, r, s = If(c)<"
            "then_branch = t () => (float[2] a, float[2] b, float[2] d, float[2] e) "
            "{ a = Identity(x) b = Constant<value = float[2] {1, 2}>() d = Neg(x) e = Identity(d) }, "
            "else_branch = f () => (float[2] i, float[2] j, float[2] k, float[2] l) "
            "{ i = Abs(x) j = Abs(x) k = Abs(x) l = Abs(x) }> }",
            ir=ir,
        )
    )
    assert sorted(outcome.ops) == ["Identity", "Identity", "Neg"]


def test_an_initializer_of_the_branch_as_its_result() -> None:
    outcome = held(
        model(
            "g (float[2] x) => (float[2] y, float[2] z) <bool c = {1}> { y = If(c)<"
            "then_branch = t () => (float[2] k) <float[2] k = {1,2}> { u = Neg(x) }, "
            "else_branch = e () => (float[2] b) { b = Abs(x) }> z = Relu(x) }"
        )
    )
    assert sorted(outcome.ops) == ["Identity", "Relu"]
    assert outcome.constants == ["k"]


def test_names_that_collide_are_made_fresh() -> None:
    """Both Ifs call everything alike, and so does a body that stays."""
    branch = (
        "<then_branch = t () => (float[2] r) <float[2] k = {1,2}> { [add] a = Add(x, k) [mul] r = Mul(a, k) }, "
        "else_branch = e () => (float[2] r) <float[2] k = {3,4}> { [add] a = Sub(x, k) [mul] r = Div(a, k) }>"
    )
    outcome = held(
        model(
            "g (float[2] x, bool u) => (float[2] y) <bool yes = {1}, bool no = {0}> "
            f"{{ p = If(yes){branch} q = If(no){branch} s = If(u){branch} m = Add(p, q) y = Add(m, s) }}"
        )
    )
    assert counts(outcome.after) == {"Add": 4, "Mul": 2, "Sub": 2, "Div": 2, "If": 1}
    graph = outcome.proto.graph
    names = [n.name for n in graph.node if n.name]
    assert len(set(names)) == len(names)
    assert len({o for n in graph.node for o in n.output}) == sum(len(n.output) for n in graph.node)
    assert {"p", "q"} <= {o for n in graph.node for o in n.output}


def test_nested_ifs_at_every_depth() -> None:
    """The inner condition is computed outside, from types, and captured through an If that stays."""
    outcome = held(
        model(
            "g (float[n,4] x, bool u) => (float[n,4] y) <int64 one = {1}, int64 four = {4}, int64 two = {2}> "
            "{ h = Shape(x) d = Gather(h, one) c = Equal(d, four) y = If(u)<"
            "then_branch = t () => (float[n,4] r) { i = Not(c) r = If(i)<"
            "then_branch = tt () => (float[n,4] rr) { rr = Abs(x) }, "
            "else_branch = te () => (float[n,4] rs) { k = Size(h) e = Equal(k, two) rs = If(e)<"
            "then_branch = tet () => (float[n,4] ra) { ra = Neg(x) }, "
            "else_branch = tee () => (float[n,4] rb) { rb = Exp(x) }> }> }, "
            "else_branch = e () => (float[n,4] s) { s = Sqrt(x) }> }"
        )
    )
    assert outcome.names.count("if-known") == 2
    assert outcome.ops == ["If", "Neg", "Sqrt"] or outcome.ops == ["If", "Sqrt", "Neg"]


def test_inside_a_loop() -> None:
    outcome = held(
        model(
            "g (float[2] x) => (float[2] y) <int64 n = {3}, bool t = {1}, int64 two = {2}> "
            "{ m = Size(x) c = Equal(m, two) y = Loop(n, t, x)<"
            "body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] u) "
            "{ co = Identity(ci) u = If(c)<then_branch = p () => (float[2] a) <float[2] k = {1,2}> { a = Add(v, k) }, "
            "else_branch = q () => (float[2] b) { b = Neg(x) }> }> }"
        )
    )
    assert sorted(outcome.ops) == ["Add", "Identity", "Loop"]
    assert [(r.name, r.place) for r in outcome.rewrites] == [("if-known", "Loop:y/body/If:u")]


def test_random_nodes_of_the_branch_stay_apart() -> None:
    draw = (
        "<then_branch = t () => (float[64] r) { a = RandomNormalLike(x) b = RandomNormalLike(x) r = Sub(a, b) }, "
        "else_branch = e () => (float[64] s) { s = RandomUniformLike(x) }>"
    )
    data = model(
        f"g (float[64] x) => (float[64] y) <bool c = {{1}}> {{ p = If(c){draw} q = If(c){draw} y = Sub(p, q) }}"
    )
    outcome = done(data)
    assert outcome.names == ["if-known", "if-known"]
    assert counts(outcome.after) == {"RandomNormalLike": 4, "Sub": 3}
    [y] = run(outcome.after, {"x": np.zeros(64, np.float32)})
    assert np.abs(y).min() > 0


def test_an_operator_that_is_not_onnx_s_keeps_its_record() -> None:
    """Outside, the node would need another name, and what else the file says of it is not ours to copy."""
    body = (
        "<then_branch = t () => (float[2] a) {{ [{}] a = my.Op(x) }}, "
        "else_branch = e () => (float[2] b) {{ b = Neg(x) }}>"
    )
    graph = "g (float[2] x) => (float[2] y) <bool c = {1}> { [one] z = Relu(x) w = If(c)%s y = Add(z, w) }"
    imports = ', "my" : 1'
    assert done(model(graph % body.format("one"), imports=imports)).rewrites == ()
    assert done(model(graph % body.format("two"), imports=imports)).names == ["if-known"]


def test_what_follows_is_typed_by_the_branch() -> None:
    """The rank behind the first If decides the second."""
    outcome = held(
        model(
            "g (float[2,1] x) => (float[m] y) <int64[1] last = {-1}, bool yes = {1}, int64 one = {1}> { z = If(yes)<"
            "then_branch = t () => (float[m] a) { a = Squeeze(x, last) }, "
            "else_branch = e () => (float[m,k] b) { b = Identity(x) }> "
            "h = Shape(z) r = Size(h) c = Equal(r, one) y = If(c)<"
            "then_branch = tt () => (float[m] d) { d = Neg(z) }, "
            "else_branch = ee () => (float[m] f) { f = Abs(z) }> }"
        )
    )
    assert outcome.ops == ["Squeeze", "Neg"]


def cell(*, recurrent: bool = True) -> bytes:
    """A recurrent cell as exporters write it: `rank(v) == 2 ? v : unsqueeze(v)`, v with two dims or three."""
    body = "u = Unsqueeze(w, first) y = LSTM<hidden_size=2>(u, W, R)" if recurrent else "y = Unsqueeze(w, first)"
    text = (
        "g (float[n,3,m] x) => (float[a] y) <int64[1] last = {-1}, int64[1] first = {0}, int64 one = {1}, "
        "int64 axis = {2}, int64 two = {2}> { s = Shape(x) d = Gather(s, axis) e = Equal(d, one) v = If(e)<"
        "then_branch = t () => (float[a] a) { a = Squeeze(x, last) }, "
        "else_branch = f () => (float[a] b) { b = Identity(x) }> "
        "h = Shape(v) r = Size(h) q = Equal(r, two) c = Not(q) w = If(c)<"
        "then_branch = tt () => (float[a] i) { i = Unsqueeze(v, first) }, "
        f"else_branch = ff () => (float[a] j) {{ j = Identity(v) }}> {body} }}"
    )
    proto = onnx.load_from_string(model(text))
    rng = np.random.default_rng(0)
    for name, width in (("W", 3), ("R", 2)):
        weights = rng.standard_normal((1, 8, width)).astype(np.float32)
        proto.graph.initializer.append(numpy_helper.from_array(weights, name))
    forget_shapes(proto.graph)
    return proto.SerializeToString()


def forget_shapes(graph: onnx.GraphProto) -> None:
    """Results without a declared shape, which onnx's text form cannot say."""
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                forget_shapes(attribute.g)


def test_a_rank_that_what_follows_cannot_take_is_ruled_out() -> None:
    data = cell()
    outcome = held(data)
    assert counts(outcome.after)["If"] == 1
    [rewrite] = [r for r in outcome.rewrites if r.name == "if-known"]
    assert rewrite.detail == "else_branch: what follows runs with rank 2 alone"
    for model_ in (data, outcome.after):
        with pytest.raises(refusals()):
            run(model_, {"x": np.zeros((2, 3, 2), np.float32)})


def test_a_rank_that_is_not_ruled_out_decides_nothing() -> None:
    assert "if-known" not in done(cell(recurrent=False)).names


def test_loaded_again_there_is_no_if() -> None:
    outcome = done(model(f"g (float[4] x) => (float[4] y) <bool c = {{1}}> {{ y = If(c){BRANCHES} }}"))
    assert [node.op for node in parse(outcome.after).graph.all_nodes()] == ["Neg", "Exp"]
