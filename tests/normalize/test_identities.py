# pyright: basic
"""Every identity where it holds, and where it does not: what each rule must see before it may act."""

from __future__ import annotations

import numpy as np
import pytest

from tests.normalize.models import held, model

pytestmark = pytest.mark.ort

# name of the rewrite, opset, graph, operators that are left
HOLDS = [
    ("add-zero", 17, "g (float[n] x) => (float[n] y) <float z = {0}> { a = Add(x, z) y = Relu(a) }", "Relu"),
    (
        "add-zero",
        17,
        "g (float[n,3] x) => (float[n,3] y) <float[1,3] z = {0,0,0}> { a = Add(z, x) y = Relu(a) }",
        "Relu",
    ),
    ("add-zero", 17, "g (int64[n] x) => (int64[n] y) <int64[1] z = {0}> { a = Add(x, z) y = Neg(a) }", "Neg"),
    ("sub-zero", 17, "g (float[n] x) => (float[n] y) <float z = {0}> { a = Sub(x, z) y = Relu(a) }", "Relu"),
    ("mul-one", 17, "g (float[n] x) => (float[n] y) <float z = {1}> { a = Mul(z, x) y = Relu(a) }", "Relu"),
    ("div-one", 17, "g (float[n] x) => (float[n] y) <float z = {1}> { a = Div(x, z) y = Relu(a) }", "Relu"),
    ("pow-one", 17, "g (float[n] x) => (float[n] y) <float z = {1}> { a = Pow(x, z) y = Relu(a) }", "Relu"),
    ("and-true", 17, "g (bool[n] x) => (bool[n] y) <bool z = {1}> { a = And(x, z) y = Not(a) }", "Not"),
    ("or-false", 17, "g (bool[n] x) => (bool[n] y) <bool z = {0}> { a = Or(z, x) y = Not(a) }", "Not"),
    ("not-of-not", 17, "g (bool[n] x) => (bool[n] y) { a = Not(x) b = Not(a) y = Not(b) }", "Not"),
    ("neg-of-neg", 17, "g (int32[n] x) => (int32[n] y) { a = Neg(x) b = Neg(a) y = Abs(b) }", "Abs"),
    ("relu-of-relu", 17, "g (float[n] x) => (float[n] y) { a = Relu(x) y = Relu(a) }", "Relu"),
    ("abs-of-abs", 17, "g (float[n] x) => (float[n] y) { a = Abs(x) y = Abs(a) }", "Abs"),
    ("ceil-of-ceil", 17, "g (float[n] x) => (float[n] y) { a = Ceil(x) y = Ceil(a) }", "Ceil"),
    ("floor-of-floor", 17, "g (float[n] x) => (float[n] y) { a = Floor(x) y = Floor(a) }", "Floor"),
    ("identity", 17, "g (float[n] x) => (float[n] y) { a = Relu(x) y = Identity(a) }", "Relu"),
    ("dropout-inference", 7, "g (float[n] x) => (float[n] y) { a = Dropout(x) y = Relu(a) }", "Relu"),
    (
        "dropout-inference",
        13,
        "g (float[n] x) => (float[n] y) <float r = {0.5}, bool t = {0}> { a = Dropout(x, r, t) y = Relu(a) }",
        "Relu",
    ),
    ("concat-of-one", 17, "g (float[n] x) => (float[n] y) { a = Concat<axis=0>(x) y = Relu(a) }", "Relu"),
    ("variadic-of-one", 17, "g (float[n] x) => (float[n] y) { a = Sum(x) b = Max(a) c = Mean(b) y = Relu(c) }", "Relu"),
    ("split-into-one", 17, "g (float[4] x) => (float[4] y) { a = Split<axis=0>(x) y = Relu(a) }", "Relu"),
    (
        "where-constant",
        17,
        "g (float[2] x, float[2] z) => (float[2] y) <bool c = {1}> { a = Where(c, x, z) y = Relu(a) }",
        "Relu",
    ),
    (
        "where-constant",
        17,
        "g (float[2] x, float[1] z) => (float[2] y) <bool c = {0}> { a = Where(c, z, x) y = Relu(a) }",
        "Relu",
    ),
    ("cast-same-type", 17, "g (float[n] x) => (float[n] y) { a = Cast<to=1>(x) y = Relu(a) }", "Relu"),
    ("cast-of-cast", 17, "g (float[n] x) => (float[n] y) { a = Cast<to=11>(x) b = Cast<to=1>(a) y = Relu(b) }", "Relu"),
    (
        "cast-of-cast",
        17,
        "g (float16[n] x) => (double[n] y) { a = Cast<to=1>(x) b = Cast<to=11>(a) y = Relu(b) }",
        "Cast Relu",
    ),
    ("cast-like", 17, "g (float[n] x, double[n] z) => (double[n] y) { a = CastLike(x, z) y = Relu(a) }", "Cast Relu"),
    (
        "transpose-identity",
        17,
        "g (float[n,m] x) => (float[n,m] y) { a = Transpose<perm=[0,1]>(x) y = Relu(a) }",
        "Relu",
    ),
    (
        "transpose-identity",
        17,
        "g (float[1,3,1] x) => (float[1,3,1] y) { a = Transpose<perm=[2,1,0]>(x) y = Relu(a) }",
        "Relu",
    ),
    (
        "transpose-of-transpose",
        17,
        (
            "g (float[n,2,3] x) => (float[n,2,3] y) { a = Transpose<perm=[1,2,0]>(x) b = Transpose<perm=[2,0,1]>(a) "
            "y = Relu(b) }"
        ),
        "Relu",
    ),
    (
        "transpose-of-transpose",
        17,
        "g (float[n,2,3] x) => (float[2,n,3] y) { a = Transpose(x) b = Transpose<perm=[1,2,0]>(a) y = Relu(b) }",
        "Transpose Relu",
    ),
    (
        "reshape-same-shape",
        17,
        "g (float[n,6] x) => (float[n,6] y) <int64[2] s = {-1,6}> { a = Reshape(x, s) y = Relu(a) }",
        "Relu",
    ),
    (
        "reshape-same-shape",
        17,
        "g (float[n,m] x) => (float[n,m] y) <int64[2] s = {0,-1}> { a = Reshape(x, s) y = Relu(a) }",
        "Relu",
    ),
    (
        "reshape-of-reshape",
        17,
        (
            "g (float[n,6] x) => (float[m,2] y) <int64[3] s = {-1,3,2}, int64[2] t = {-1,2}> "
            "{ a = Reshape(x, s) b = Reshape(a, t) y = Relu(b) }"
        ),
        "Reshape Relu",
    ),
    (
        "reshape-of-reshape",
        17,
        (
            "g (float[n,6] x) => (float[m,2] y) <int64[1] s = {0}, int64[2] t = {-1,2}> "
            "{ a = Unsqueeze(x, s) b = Reshape(a, t) y = Relu(b) }"
        ),
        "Reshape Relu",
    ),
    ("flatten-same-shape", 17, "g (float[n,m] x) => (float[n,m] y) { a = Flatten(x) y = Relu(a) }", "Relu"),
    ("flatten-same-shape", 17, "g (float[1,6] x) => (float[1,6] y) { a = Flatten<axis=0>(x) y = Relu(a) }", "Relu"),
    (
        "squeeze-pair",
        17,
        "g (float[n,m] x) => (float[n,m] y) <int64[1] p = {0}> { a = Unsqueeze(x, p) b = Squeeze(a, p) y = Relu(b) }",
        "Relu",
    ),
    (
        "squeeze-pair",
        17,
        (
            "g (float[n,m] x) => (float[n,m] y) <int64[1] p = {2}, int64[1] q = {-1}> "
            "{ a = Unsqueeze(x, p) b = Squeeze(a, q) y = Relu(b) }"
        ),
        "Relu",
    ),
    (
        "squeeze-pair",
        11,
        "g (float[n,1] x) => (float[n,1] y) { a = Squeeze<axes=[1]>(x) b = Unsqueeze<axes=[-1]>(a) y = Relu(b) }",
        "Relu",
    ),
    ("squeeze-same-shape", 17, "g (float[2,3] x) => (float[2,3] y) { a = Squeeze(x) y = Relu(a) }", "Relu"),
    ("pad-nothing", 9, "g (float[n] x) => (float[n] y) { a = Pad<pads=[0,0]>(x) y = Relu(a) }", "Relu"),
    (
        "pad-nothing",
        17,
        'g (float[n] x) => (float[n] y) <int64[2] p = {0,0}> { a = Pad<mode="reflect">(x, p) y = Relu(a) }',
        "Relu",
    ),
    (
        "slice-everything",
        17,
        (
            "g (float[n,3] x) => (float[n,3] y) <int64[2] s = {0,0}, int64[2] e = {9223372036854775807,3}> "
            "{ a = Slice(x, s, e) y = Relu(a) }"
        ),
        "Relu",
    ),
    (
        "slice-everything",
        9,
        "g (float[n,3] x) => (float[n,3] y) { a = Slice<starts=[0], ends=[5], axes=[1]>(x) y = Relu(a) }",
        "Relu",
    ),
    (
        "slice-everything",
        17,
        "g (float[4] x) => (float[4] y) <int64[1] s = {-4}, int64[1] e = {4}> { a = Slice(x, s, e) y = Relu(a) }",
        "Relu",
    ),
    (
        "expand-nothing",
        17,
        "g (float[n,3] x) => (float[n,3] y) <int64[2] s = {1,3}> { a = Expand(x, s) y = Relu(a) }",
        "Relu",
    ),
    (
        "tile-once",
        17,
        "g (float[n,3] x) => (float[n,3] y) <int64[2] s = {1,1}> { a = Tile(x, s) y = Relu(a) }",
        "Relu",
    ),
]


@pytest.mark.parametrize(("name", "opset", "graph", "left"), HOLDS)
def test_where_it_holds(name: str, opset: int, graph: str, left: str) -> None:
    outcome = held(model(graph, opset=opset))
    assert name in outcome.names
    assert " ".join(outcome.ops) == left
    assert all(r.proof == "by definition" for r in outcome.rewrites)


# why not, opset, graph
DOES_NOT = [
    (
        "the constant makes it longer",
        17,
        "g (float[n] x) => (float[m] y) <float[2] z = {0,0}> { a = Add(x, z) y = Relu(a) }",
    ),
    (
        "the constant adds an axis",
        17,
        "g (float[n] x) => (float[1,n] y) <float[1,1] z = {0}> { a = Add(x, z) y = Relu(a) }",
    ),
    ("the rank is not known", 17, "g (float[] x) => (float[] y) <float[1,1] z = {1}> { a = Mul(x, z) y = Relu(a) }"),
    ("not all zero", 17, "g (float[2] x) => (float[2] y) <float[2] z = {0,1}> { a = Add(x, z) y = Relu(a) }"),
    ("zero minus x", 17, "g (float[n] x) => (float[n] y) <float z = {0}> { a = Sub(z, x) y = Relu(a) }"),
    ("one over x", 17, "g (float[n] x) => (float[n] y) <float z = {1}> { a = Div(z, x) y = Exp(a) }"),
    ("one to the x", 17, "g (float[n] x) => (float[n] y) <float z = {1}> { a = Pow(z, x) y = Relu(a) }"),
    ("integers go through doubles", 17, "g (int64[n] x) => (int64[n] y) <double z = {1}> { a = Pow(x, z) y = Neg(a) }"),
    ("and false", 17, "g (bool[n] x) => (bool[n] y) <bool z = {0}> { a = And(x, z) y = Not(a) }"),
    (
        "the other branch is wider",
        17,
        "g (float[1] x, float[3] z) => (float[3] y) <bool c = {1}> { a = Where(c, x, z) y = Relu(a) }",
    ),
    (
        "float to half and back",
        17,
        "g (float[n] x) => (float[n] y) { a = Cast<to=10>(x) b = Cast<to=1>(a) y = Relu(b) }",
    ),
    (
        "float to integer and back",
        17,
        "g (float[n] x) => (float[n] y) { a = Cast<to=7>(x) b = Cast<to=1>(a) y = Relu(b) }",
    ),
    (
        "int64 to double and back",
        17,
        "g (int64[n] x) => (int64[n] y) { a = Cast<to=11>(x) b = Cast<to=7>(a) y = Neg(b) }",
    ),
    (
        "half through bfloat16",
        17,
        "g (float16[n] x) => (float[n] y) { a = Cast<to=16>(x) b = Cast<to=1>(a) y = Relu(b) }",
    ),
    (
        "number to bool and back",
        17,
        "g (int32[n] x) => (int32[n] y) { a = Cast<to=9>(x) b = Cast<to=6>(a) y = Neg(b) }",
    ),
    ("rounded twice", 17, "g (int32[n] x) => (float16[n] y) { a = Cast<to=11>(x) b = Cast<to=10>(a) y = Neg(b) }"),
    ("a real transpose", 17, "g (float[2,2] x) => (float[2,2] y) { a = Transpose(x) y = Relu(a) }"),
    ("only one axis of size 1", 17, "g (float[1,3] x) => (float[3,1] y) { a = Transpose(x) y = Relu(a) }"),
    (
        "the inner transpose is read elsewhere",
        17,
        (
            "g (float[n,2,3] x) => (float[2,n,3] y, float[3,2,n] z) "
            "{ a = Transpose(x) b = Transpose<perm=[1,2,0]>(a) y = Relu(b) z = Relu(a) }"
        ),
    ),
    (
        "a 0 copies a dim of the inner shape",
        17,
        (
            "g (float[2,6] x) => (float[3,2,2] y) <int64[2] s = {3,4}, int64[3] t = {0,2,-1}> "
            "{ a = Reshape(x, s) b = Reshape(a, t) y = Relu(b) }"
        ),
    ),
    (
        "dims that are not known may differ",
        17,
        "g (float[n,m] x) => (float[p,q] y) <int64[2] s = {1,-1}> { a = Reshape(x, s) y = Relu(a) }",
    ),
    (
        "squeezed elsewhere",
        17,
        (
            "g (float[1,m] x) => (float[p,q] y) <int64[1] p = {0}, int64[1] q = {1}> "
            "{ a = Unsqueeze(x, p) b = Squeeze(a, q) y = Relu(b) }"
        ),
    ),
    ("pads one", 17, "g (float[n] x) => (float[m] y) <int64[2] p = {0,1}> { a = Pad(x, p) y = Relu(a) }"),
    ("crops and pads", 17, "g (float[3] x) => (float[3] y) <int64[2] p = {1,-1}> { a = Pad(x, p) y = Relu(a) }"),
    (
        "backwards",
        17,
        (
            "g (float[3] x) => (float[3] y) "
            "<int64[1] s = {2}, int64[1] e = {-10}, int64[1] p = {0}, int64[1] t = {-1}> "
            "{ a = Slice(x, s, e, p, t) y = Relu(a) }"
        ),
    ),
    (
        "the end may come too early",
        17,
        "g (float[n] x) => (float[m] y) <int64[1] s = {0}, int64[1] e = {5}> { a = Slice(x, s, e) y = Relu(a) }",
    ),
    ("expands 1 to 2", 17, "g (float[n,1] x) => (float[n,2] y) <int64[2] s = {1,2}> { a = Expand(x, s) y = Relu(a) }"),
    ("flattens for real", 17, "g (float[n,2,3] x) => (float[n,6] y) { a = Flatten(x) y = Relu(a) }"),
    ("two parts", 17, "g (float[n] x) => (float[m] y) { a = Concat<axis=0>(x, x) y = Relu(a) }"),
]


@pytest.mark.parametrize(("why", "opset", "graph"), DOES_NOT, ids=[d[0] for d in DOES_NOT])
def test_where_it_does_not(why: str, opset: int, graph: str) -> None:
    outcome = held(model(graph, opset=opset))
    assert outcome.names == []


def test_a_training_dropout_stays() -> None:
    graph = "g (float[n] x) => (float[n] y) <float r = {0}, bool t = {1}> { a = Dropout(x, r, t) y = Relu(a) }"
    assert held(model(graph)).ops == ["Dropout", "Relu"]


def test_a_dropout_whose_mode_is_an_input_stays() -> None:
    graph = "g (float[n] x, bool t) => (float[n] y) <float r = {0}> { a = Dropout(x, r, t) y = Relu(a) }"
    assert held(model(graph)).ops == ["Dropout", "Relu"]


def test_a_dropout_whose_mask_is_read_stays() -> None:
    graph = "g (float[n] x) => (float[n] y, bool[n] z) { a, m = Dropout(x) y = Relu(a) z = Not(m) }"
    assert held(model(graph)).ops == ["Dropout", "Relu", "Not"]


def test_nan_and_infinity_go_through() -> None:
    graph = "g (float[3] x) => (float[3] y) <float z = {1}> { a = Mul(x, z) y = Neg(a) }"
    held(model(graph), {"x": np.array([np.nan, np.inf, -np.inf], np.float32)})


@pytest.mark.parametrize(
    "graph",
    [
        "g (float[n] x) => (float[n] y) { y = Identity(x) }",
        "g (float[n] x) => (float[1] y) <float[1] c = {2}> { y = Identity(c) }",
        "g (float[n] x) => (float[n] y, float[n] z) { y = Relu(x) z = Identity(y) }",
        "g (float[n] x) => (float[n] y, float[n] z) { y = Relu(x) z = Relu(x) }",
        "g (float[n] x) => (float[n] y) <float z = {0}> { y = Add(x, z) }",
    ],
)
def test_a_result_needs_a_node_of_its_own(graph: str) -> None:
    assert held(model(graph)).rewrites == ()
