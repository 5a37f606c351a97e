# pyright: basic
"""The never table: random, stateful and unknown nodes are not folded, merged, duplicated or dropped."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from superopt.normalize.purity import CONTROL_FLOW, RANDOM
from tests.graphs import run
from tests.normalize.models import counts, done, held, model


@pytest.mark.unit
def test_every_operator_that_onnx_calls_random_is_known_to_be() -> None:
    schemas = onnx.defs.get_all_schemas_with_history()
    random = {s.name for s in schemas if "Non" in str(getattr(s, "node_determinism", ""))}
    assert random - CONTROL_FLOW - {"AffineGrid", "Dropout"} == RANDOM  # AffineGrid only for the If inside it


@pytest.mark.ort
def test_two_draws_stay_two() -> None:
    data = model("g (float[n] x) => (float[n] y) { a = RandomNormalLike(x) b = RandomNormalLike(x) y = Sub(a, b) }")
    outcome = done(data)
    assert outcome.rewrites == ()
    [y] = run(outcome.after, {"x": np.zeros(64, np.float32)})
    assert np.abs(y).max() > 0


@pytest.mark.ort
def test_two_draws_stay_two_when_their_operands_become_one() -> None:
    """Both read an equal value: merging those must not merge the draws."""
    data = model(
        "g (float[n] x) => (float[n] y) { p = Neg(x) q = Neg(x) a = RandomNormalLike(p) b = RandomNormalLike(q) "
        "y = Sub(a, b) }"
    )
    outcome = done(data)
    assert outcome.names == ["common-subexpression"]
    assert counts(outcome.after)["RandomNormalLike"] == 2
    [y] = run(outcome.after, {"x": np.zeros(64, np.float32)})
    assert np.abs(y).max() > 0


@pytest.mark.ort
def test_two_draws_stay_two_in_a_body() -> None:
    data = model(
        "g (float[n] x, bool c) => (float[n] y) { y = If(c)<"
        "then_branch = t () => (float[n] d) { p = Neg(x) q = Neg(x) a = RandomNormalLike(p) b = RandomNormalLike(q) "
        "d = Sub(a, b) }, else_branch = e () => (float[n] f) { f = Abs(x) }> }"
    )
    outcome = done(data)
    assert outcome.names == ["common-subexpression"]
    assert counts(outcome.after)["RandomNormalLike"] == 2
    [y] = run(outcome.after, {"x": np.zeros(64, np.float32), "c": np.array(True)})
    assert np.abs(y).max() > 0


@pytest.mark.ort
@pytest.mark.parametrize(
    "graph",
    [
        "g (float[2] x) => (float[2] y) { a = RandomNormal<shape=[2]>() y = Relu(x) }",
        "g (float[2] x) => (float[2] y) <float[2] p = {0.5,0.5}> { a = Bernoulli(p) y = Relu(x) }",
        "g (float[2] x) => (float[2] y) <float[1,2] p = {0.5,0.5}> { a = Multinomial(p) y = Relu(x) }",
        (
            "g (float[2] x) => (float[2] y) <float[2] p = {1,1}, float r = {0.5}, bool t = {1}> "
            "{ a = Dropout(p, r, t) y = Relu(x) }"
        ),
        (
            "g (float[2] x, bool c) => (float[2] y) { z = If(c)<then_branch = t () => (float[2] d) "
            "{ d = RandomUniform<shape=[2]>() }, else_branch = e () => (float[2] f) { f = Abs(x) }> y = Relu(x) }"
        ),
    ],
)
def test_a_dead_draw_stays(graph: str) -> None:
    assert done(model(graph)).rewrites == ()


@pytest.mark.ort
def test_a_draw_of_constants_is_not_folded() -> None:
    data = model("g (float[2] x) => (float[2] y) <float[2] p = {1,1}> { a = RandomNormalLike(p) y = Add(x, a) }")
    assert done(data).rewrites == ()


@pytest.mark.ort
@pytest.mark.parametrize("op", ["com.microsoft.Gelu", "custom.Thing"])
def test_operators_of_other_domains_are_opaque(op: str) -> None:
    domain = op.rpartition(".")[0]
    data = model(
        f"g (float[2] x) => (float[2] y, float[2] z) <float[2] c = {{1,2}}> "
        f"{{ a = {op}(c) b = {op}(c) d = {op}(x) y = Add(x, a) z = Add(x, b) }}",
        imports=f', "{domain}" : 1',
    )
    assert done(data).rewrites == ()


@pytest.mark.ort
def test_training_operators_are_opaque() -> None:
    adam = "ai.onnx.preview.training.Adam(r, t, c, c, c, c)"
    data = model(
        "g (float[2] x) => (float[2] y, float[2] z) <float r = {0.5}, int64 t = {1}, float[2] c = {1,2}> "
        f"{{ a, b, d = {adam} e, f, h = {adam} i, j, k = {adam} y = Add(x, a) z = Add(x, e) }}",
        imports=', "ai.onnx.preview.training" : 1',
    )
    assert done(data).rewrites == ()


@pytest.mark.ort
def test_a_function_of_the_model_is_opaque_even_under_a_standard_name() -> None:
    body = (
        "g (float[2] x) => (float[2] y) <float[2] c = {1,2}> { a = Identity(c) b = Neg(x) y = Add(b, a) }\n"
        '<domain: "", opset_import: ["" : 17]> Identity (p) => (q) { q = Add(p, p) }'
    )
    assert done(model(body)).rewrites == ()


@pytest.mark.ort
def test_an_operator_that_onnx_does_not_know_is_opaque() -> None:
    data = model("g (float[2] x) => (float[2] y) <float[2] c = {1,2}> { a = Affine(c) y = Add(x, a) }")
    assert done(data).rewrites == ()


@pytest.mark.ort
def test_versions_that_we_were_not_tested_with_pass_through() -> None:
    data = model("g (float[2] x) => (float[2] y) { a = Identity(x) y = Relu(a) }", opset=6, ir=3)
    assert done(data).rewrites == ()


@pytest.mark.ort
def test_pure_nodes_of_the_machine_learning_domain_are_ordinary() -> None:
    data = model(
        "g (float[2] x) => (float[2] y) { a = ai.onnx.ml.Binarizer(x) b = ai.onnx.ml.Binarizer(x) y = Add(a, b) }",
        imports=', "ai.onnx.ml" : 3',
    )
    assert held(data).names == ["common-subexpression"]
