# pyright: basic
"""Bodies of If, Loop and Scan: passes reach them, captured values stay right, names of siblings may be equal."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.ir.onnx import parse
from tests.graphs import run
from tests.normalize.models import counts, done, held, model

pytestmark = pytest.mark.ort

FLAG = {"c": np.array(True)}


def test_passes_reach_bodies_and_say_where() -> None:
    outcome = held(
        model(
            "g (float[n] x, bool c) => (float[n] y) { [choose] y = If(c)<"
            "then_branch = t () => (float[n] p) <float z = {0}> { [plus] a = Add(x, z) p = Neg(a) }, "
            "else_branch = e () => (float[n] q) { [same] b = Identity(x) q = Abs(b) }> }"
        )
    )
    assert [(r.name, r.place) for r in outcome.rewrites] == [
        ("identity", "choose/else_branch/same"),
        ("add-zero", "choose/then_branch/plus"),
    ]
    assert outcome.ops == ["If", "Neg", "Abs"]


def test_equal_names_in_sibling_bodies_stay_apart() -> None:
    outcome = held(
        model(
            "g (float[2] x, bool c) => (float[2] y) { y = If(c)<"
            "then_branch = t () => (float[2] r) <float[2] k = {1,2}> "
            "{ m = Neg(k) n = Neg(k) s = Add(m, n) r = Add(x, s) }, "
            "else_branch = e () => (float[2] r) <float[2] k = {3,4}> "
            "{ m = Neg(k) n = Abs(k) s = Add(m, n) r = Mul(x, s) }> }"
        ),
        FLAG,
    )
    assert outcome.ops == ["If", "Add", "Mul"]


def test_a_constant_outside_is_a_constant_inside() -> None:
    outcome = held(
        model(
            "g (float[2] x, bool c) => (float[2] y) <float[2] k = {1,4}, float zero = {0}> { y = If(c)<"
            "then_branch = t () => (float[2] r) { m = Sqrt(k) a = Add(x, zero) r = Add(a, m) }, "
            "else_branch = e () => (float[2] s) { s = Abs(x) }> }"
        )
    )
    assert outcome.ops == ["If", "Add", "Abs"]
    assert outcome.constants == []


def test_a_body_does_not_confuse_a_constant_of_its_own_with_an_outer_one() -> None:
    """Merging p and q makes the branch read p, and p is also what the branch calls its own constant."""
    data = model(
        "g (float[2] x, bool c) => (float[2] y, float[2] w) { p = Exp(x) q = Exp(x) y = If(c)<"
        "then_branch = t () => (float[2] r) <float[2] p = {7,8}> { m = Add(q, p) r = Mul(m, x) }, "
        "else_branch = e () => (float[2] s) { s = Abs(q) }> w = Neg(p) }"
    )
    outcome = done(data)
    assert outcome.names == ["common-subexpression"]
    feeds = {"x": np.array([0, 1], np.float32), "c": np.array(True)}
    expected = (np.exp(feeds["x"]) + np.array([7, 8])) * feeds["x"]
    np.testing.assert_allclose(run(outcome.after, feeds)[0], expected, rtol=1e-6)


def test_a_loop_that_captures() -> None:
    outcome = held(
        model(
            "g (float[2] x) => (float[2] y) <int64 n = {3}, bool t = {1}, float[2] k = {1,2}, float one = {1}> "
            "{ p = Exp(x) q = Exp(x) y = Loop(n, t, x)<"
            "body = b (int64 i, bool ci, float[2] v) => (bool co, float[2] u) "
            "{ co = Identity(ci) m = Neg(k) f = Mul(v, one) d = Add(p, q) e = Add(d, m) u = Add(f, e) }> }"
        )
    )
    assert counts(outcome.after) == {"Exp": 1, "Loop": 1, "Identity": 1, "Add": 3}
    [loop] = [n for n in parse(outcome.after).graph.nodes if n.op == "Loop"]
    assert len(loop.captured) == 1


def test_a_value_that_changes_from_turn_to_turn_is_no_constant() -> None:
    """The body says that v has one element, which onnxruntime does not hold it to; it grows."""
    outcome = held(
        model(
            "g (float[1] x) => (float[m] y, int64[n] s) <int64 n = {3}, bool t = {1}> "
            "{ y, s = Loop(n, t, x)<body = b (int64 i, bool ci, float[1] v) => (bool co, float[k] u, int64 z) "
            "{ co = Identity(ci) z = Size(v) u = Concat<axis=0>(v, v) }> }"
        )
    )
    assert outcome.rewrites == ()


def test_a_scan() -> None:
    outcome = held(
        model(
            "g (float[2] z, float[3,2] x) => (float[2] y, float[3,2] w) <float one = {1}> "
            "{ y, w = Scan(z, x)<num_scan_inputs = 1, body = b (float[2] a, float[2] v) => (float[2] u, float[2] o) "
            "{ m = Mul(a, one) n = Identity(v) u = Add(m, n) o = Add(m, n) }> }"
        )
    )
    assert sorted(outcome.names) == ["identity", "mul-one"]


def test_nested_bodies() -> None:
    outcome = held(
        model(
            "g (float[2] x, bool c) => (float[2] y) <float zero = {0}> { p = Exp(x) y = If(c)<"
            "then_branch = t () => (float[2] r) { a = Add(p, zero) r = If(c)<"
            "then_branch = tt () => (float[2] rr) { b = Add(a, zero) rr = Neg(b) }, "
            "else_branch = te () => (float[2] rs) { rs = Abs(p) }> }, "
            "else_branch = e () => (float[2] s) { s = Abs(x) }> }"
        )
    )
    assert outcome.names == ["add-zero", "add-zero"]
    assert outcome.ops == ["Exp", "If", "If", "Neg", "Abs", "Abs"]


def test_a_dead_if_goes_with_all_it_read() -> None:
    outcome = held(
        model(
            "g (float[2] x, bool c) => (float[2] y) <float[2] k = {1,2}> { p = Exp(x) z = If(c)<"
            "then_branch = t () => (float[2] r) { r = Add(p, k) }, "
            "else_branch = e () => (float[2] s) { s = Abs(x) }> y = Relu(x) }"
        )
    )
    assert outcome.names == ["dead-node"]
    assert outcome.ops == ["Relu"]
    assert outcome.constants == []
