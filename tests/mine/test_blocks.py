# ruff: noqa: E501
# pyright: basic
"""Blocks are recognized by what they compute; altered ones are not."""

from __future__ import annotations

import pytest

from superopt.generate.reduce import is_found
from superopt.verify.prove import prove
from tests.mine.blocks import (
    ATTENTION,
    BY_HEAD,
    EINSUM,
    FAST_GELU,
    GELU,
    GUARDED,
    HARD_SWISH,
    LAYER_NORM,
    ONE_HEAD_OF_KEYS,
    PACKED,
    POSITIONS_FIRST,
    REGISTRY,
    RMS_NORM,
    ROTARY,
    ROTARY_OF_PAIRS,
    model_bytes,
    operators,
    recognized,
    rotary_of_halves,
    whole,
)

ATTENTIONS = {"Attention", "com.microsoft::MultiHeadAttention", "com.microsoft::Attention"}
NORMS = {"LayerNormalization", "com.microsoft::SkipLayerNormalization", "InstanceNormalization", "GroupNormalization"}
ROOTS = {"RMSNormalization", "SimplifiedLayerNormalization", "com.microsoft::SkipSimplifiedLayerNormalization"}
GELUS = {
    "Gelu",
    "com.microsoft::Gelu",
    "com.microsoft::FastGelu",
    "com.microsoft::QuickGelu",
    "com.microsoft::BiasGelu",
}
SWISHES = {"HardSwish", "Mul", "Swish"}
TURNED = {"RotaryEmbedding", "com.microsoft::RotaryEmbedding"}
HALVES = rotary_of_halves()

RIGHT = [
    pytest.param(ATTENTION, ATTENTIONS, id="attention"),
    pytest.param(PACKED, {"com.microsoft::Attention"}, id="packed attention"),
    pytest.param(BY_HEAD, {"com.microsoft::MultiHeadAttention"}, id="queries, keys and values by head"),
    pytest.param(POSITIONS_FIRST, {"Transpose"}, id="positions first, batch and heads one axis"),
    pytest.param(EINSUM, ATTENTIONS, id="attention by Einsum"),
    pytest.param(ONE_HEAD_OF_KEYS, ATTENTIONS, id="many heads of queries, one of keys"),
    pytest.param(HALVES, {"com.microsoft::RotaryEmbedding"}, id="rotary tables as wide as a head"),
    pytest.param(ROTARY_OF_PAIRS, {"com.microsoft::RotaryEmbedding"}, id="rotary of neighbours"),
    pytest.param(LAYER_NORM, NORMS, id="layer-norm"),
    pytest.param(RMS_NORM, ROOTS, id="rms-norm"),
    pytest.param(GELU, GELUS, id="gelu"),
    pytest.param(FAST_GELU, GELUS, id="fast-gelu"),
    pytest.param(HARD_SWISH, SWISHES, id="hard-swish"),
    pytest.param(ROTARY, TURNED, id="rotary"),
]

OTHERWISE_SPELLED = [
    pytest.param(ATTENTION.replace("t = Mul(s, c)", "t = Div(s, c)"), ATTENTIONS, id="scale as a quotient"),
    pytest.param(
        ATTENTION.replace("s = MatMul(q2, k2)\n  t = Mul(s, c)", "z = Mul(q2, c)\n  t = MatMul(z, k2)"),
        ATTENTIONS, id="scale on the queries",
    ),
    pytest.param(
        ATTENTION.replace("k1 = Reshape(k, ks)", "k0 = Mul(k, c)\n  k1 = Reshape(k0, ks)").replace("t = Mul(s, c)", "t = Identity(s)"),
        ATTENTIONS, id="scale on the keys, before heads are split",
    ),
    pytest.param(ATTENTION.replace("u = Add(t, m)", "u = Identity(t)"), ATTENTIONS, id="no mask"),
    pytest.param(
        ATTENTION.replace("k2 = Transpose<perm = [0,2,3,1]>(k1)", "k0 = Transpose<perm = [0,2,1,3]>(k1)\n  k2 = Transpose<perm = [0,1,3,2]>(k0)"),
        ATTENTIONS, id="keys transposed twice",
    ),
    pytest.param(
        ATTENTION.replace("(float[2,5,12] y)", "(float[10,12] y)").replace("int64[3] ys = {2,5,12}", "int64[2] ys = {10,12}"),
        ATTENTIONS, id="flattened for a Gemm",
    ),
    pytest.param(
        ATTENTION.replace(", float[2,1,5,7] m)", ")").replace("float c = {0.37}>", "float c = {0.37}, float[1,3,5,7] m>"),
        ATTENTIONS, id="a bias of positions",
    ),
    pytest.param(LAYER_NORM.replace("s = Mul(d, d)", "s = Pow(d, two)"), NORMS, id="square as a power"),
    pytest.param(LAYER_NORM.replace("g = Mul(n, w)\n  y = Add(g, b)", "y = Mul(n, w)"), NORMS, id="no bias"),
    pytest.param(RMS_NORM.replace("i = Div(one, r)\n  n = Mul(x, i)", "n = Div(x, r)"), ROOTS, id="root as a divisor"),
    pytest.param(RMS_NORM.replace("i = Div(one, r)", "i = Reciprocal(r)"), ROOTS, id="root as a reciprocal"),
    pytest.param(GELU.replace("d = Mul(x, c)\n  y = Mul(d, h)", "d = Mul(x, h)\n  y = Mul(d, c)"), GELUS, id="half first"),
    pytest.param(
        FAST_GELU.replace("a = Pow(x, three)", "z = Mul(x, x)\n  a = Mul(z, x)"), GELUS, id="cube as products"
    ),
    pytest.param(
        HARD_SWISH.replace("c = Mul(x, b)\n  y = Div(c, six)", "c = Div(b, six)\n  y = Mul(x, c)"), SWISHES, id="sixth first"
    ),
]  # fmt: skip


@pytest.mark.unit
@pytest.mark.parametrize(("text", "wanted"), [*RIGHT, *OTHERWISE_SPELLED])
def test_blocks_are_recognized_however_they_are_spelled(text: str, wanted: set[str]) -> None:
    assert operators(text) & wanted


@pytest.mark.unit
@pytest.mark.parametrize("text", [GELU, RMS_NORM, HARD_SWISH, ROTARY, HALVES, BY_HEAD])
def test_what_is_recognized_is_proved_for_all_sizes(text: str) -> None:
    hits = recognized(text)
    assert hits
    for hit in hits:
        assert prove(hit.rule, REGISTRY, seconds=120).status == "proved", hit.rule


@pytest.mark.unit
@pytest.mark.parametrize("text", [HALVES, BY_HEAD])
def test_what_is_recognized_can_be_written_and_is_found_again(text: str) -> None:
    assert any(is_found(hit.rule, REGISTRY) for hit in recognized(text) if hit.target.operator in (ATTENTIONS | TURNED))


@pytest.mark.unit
def test_a_part_with_a_number_that_is_none_is_left() -> None:
    text = altered(
        BY_HEAD,
        ("u = Add(t, m)", "i = Cast<to = 9>(m)\n  n = Where(i, c, low)\n  u = Add(t, n)"),
        ("float c", "float low = {-inf}, float c"),
    )
    assert not whole(text)


def altered(block: str, *changes: tuple[str, str]) -> str:
    for before, after in changes:
        assert before in block
        block = block.replace(before, after)
    return block


TWICE = ("=> (float[2,5,12] y)", "=> (float[2,5,12] y, float[2,3,5,7] u)")
NEARLY = [
    # attention
    (ATTENTIONS, altered(ATTENTION, ("Softmax<axis = 3>", "Softmax<axis = 2>"))),
    (ATTENTIONS, altered(ATTENTION, ("Softmax<axis = 3>", "Softmax<axis = 1>"))),
    (ATTENTIONS, altered(ATTENTION, ("u = Add(t, m)\n  p = Softmax<axis = 3>(u)", "u = Softmax<axis = 3>(t)\n  p = Add(u, m)"))),
    (ATTENTIONS, altered(ATTENTION, ("u = Add(t, m)", "u = Mul(t, m)"))),
    (ATTENTIONS, altered(ATTENTION, ("u = Add(t, m)", "u = Sub(t, m)"))),
    (ATTENTIONS, altered(ATTENTION, ("t = Mul(s, c)\n  u = Add(t, m)", "t = Add(s, m)\n  u = Mul(t, c)"))),
    (ATTENTIONS, altered(ATTENTION, ("t = Mul(s, c)", "t = Mul(s, s)"))),
    (ATTENTIONS, altered(ATTENTION, ("o = MatMul(p, v2)", "p2 = Mul(p, c)\n  o = MatMul(p2, v2)"))),
    (ATTENTIONS, altered(ATTENTION, ("float c = {0.37}", "float[1,3,1,1] c = {0.37, 0.37, 1}"))),
    (ATTENTIONS, altered(ATTENTION, ("o1 = Transpose<perm = [0,2,1,3]>(o)", "o1 = Identity(o)"))),
    (ATTENTIONS, altered(ATTENTION, ("o1 = Transpose<perm = [0,2,1,3]>(o)", "o1 = Transpose<perm = [0,2,3,1]>(o)"))),
    (ATTENTIONS, altered(ATTENTION, ("v1 = Reshape(v, ks)\n  v2 = Transpose<perm = [0,2,1,3]>(v1)", "v2 = Reshape(v, vs)"), ("int64[4] ks", "int64[4] vs = {2,3,7,4}, int64[4] ks"))),
    (ATTENTIONS, altered(ATTENTION, ("k2 = Transpose<perm = [0,2,3,1]>(k1)", "k0 = Transpose<perm = [0,3,2,1]>(k1)\n  k2 = Reshape(k0, kz)"), ("int64[4] ks", "int64[4] kz = {2,3,4,7}, int64[4] ks"))),
    (ATTENTIONS, altered(ATTENTION, ("p = Softmax<axis = 3>(u)", "z = Exp(u)\n  n = ReduceMax<axes = [3], keepdims = 1>(z)\n  p = Div(z, n)"))),
    (ATTENTIONS, altered(ATTENTION, ("p = Softmax<axis = 3>(u)", "p = Sigmoid(u)"))),
    (ATTENTIONS, altered(ATTENTION, ("p = Softmax<axis = 3>(u)", "z = Softmax<axis = 3>(u)\n  p = Relu(z)"), ("t = Mul(s, c)", "t = Relu(s)"))),
    (ATTENTIONS, altered(ATTENTION, ("o = MatMul(p, v2)", "o0 = MatMul(p, v2)\n  o = Mul(o0, c)"))),
    (ATTENTIONS, altered(ATTENTION, TWICE)),
    # attention of packed queries, keys and values
    (ATTENTIONS, altered(PACKED, ("q0 = Slice(p3, zero, one, zero)\n", "q0 = Slice(p3, one, two, zero)\n"), ("k0 = Slice(p3, one, two, zero)", "k0 = Slice(p3, zero, one, zero)"))),
    (ATTENTIONS, altered(PACKED, ("v0 = Slice(p3, two, three, zero)", "v0 = Slice(p3, one, two, zero)"))),
    (ATTENTIONS, altered(PACKED, ("Transpose<perm = [2,0,3,1,4]>", "Transpose<perm = [3,0,2,1,4]>"))),
    (ATTENTIONS, altered(PACKED, ("Softmax<axis = 3>", "Softmax<axis = 2>"))),
    # attention by head
    (ATTENTIONS, altered(BY_HEAD, ("Softmax<axis = 3>", "Softmax<axis = 2>"))),
    (ATTENTIONS, altered(BY_HEAD, ("o1 = Transpose<perm = [0,2,1,3]>(o)\n  y = Reshape(o1, ys)", "y = Reshape(o, ys)"))),
    # attention in other orders of its axes
    (ATTENTIONS | {"Transpose"}, altered(POSITIONS_FIRST, ("Softmax<axis = 2>", "Softmax<axis = 1>"))),
    (ATTENTIONS | {"Transpose"}, altered(POSITIONS_FIRST, ("v2 = Transpose<perm = [1,0,2]>(v1)", "v2 = Reshape(v1, vs)"), ("int64[3] ks", "int64[3] vs = {6,7,4}, int64[3] ks"))),
    (ATTENTIONS, altered(EINSUM, ("bhqk,bkhd->bqhd", "bhqk,bkhd->bqdh"))),
    (ATTENTIONS, altered(EINSUM, ("Softmax<axis = 3>", "Softmax<axis = 1>"))),
    (ATTENTIONS, altered(ONE_HEAD_OF_KEYS, ("Softmax<axis = 3>", "Softmax<axis = 1>"))),
    # layer normalization
    (NORMS, altered(LAYER_NORM, ("f = Add(v, e)\n  r = Sqrt(f)", "f = Sqrt(v)\n  r = Add(f, e)"))),
    (NORMS, altered(LAYER_NORM, ("f = Add(v, e)\n  r = Sqrt(f)", "f = Add(v, e)\n  z = Sqrt(f)\n  r = Sqrt(z)"))),
    (NORMS, altered(LAYER_NORM, ("n = Div(d, r)", "n = Div(x, r)"))),
    (NORMS, altered(LAYER_NORM, ("n = Div(d, r)", "n = Div(d, f)"))),
    (NORMS, altered(LAYER_NORM, ("s = Mul(d, d)", "s = Mul(d, x)\n  "), ("v = ReduceMean", "z = Abs(s)\n  v = ReduceMean"), ("keepdims = 1>(s)", "keepdims = 1>(z)"))),
    (NORMS, altered(LAYER_NORM, ("v = ReduceMean<axes = [2]", "v = ReduceMean<axes = [1]"))),
    (NORMS, altered(LAYER_NORM, ("a = ReduceMean<axes = [2]", "a = ReduceMean<axes = [1]"))),
    (NORMS, altered(LAYER_NORM, ("v = ReduceMean", "v = ReduceSum"), ("<axes = [2], keepdims = 1>(s)", "(s, ax)"), ("float e", "int64[1] ax = {2}, float e"))),
    (NORMS, altered(LAYER_NORM, ("d = Sub(x, a)", "d = Add(x, a)"))),
    (NORMS, altered(LAYER_NORM, ("g = Mul(n, w)\n  y = Add(g, b)", "g = Add(n, b)\n  y = Mul(g, x)"))),
    (NORMS, altered(LAYER_NORM, ("a = ReduceMean<axes = [2]", "a = ReduceMax<axes = [2]"))),
    # root mean square
    (ROOTS, altered(RMS_NORM, ("r = Sqrt(f)", "r = Identity(f)"))),
    (ROOTS, altered(RMS_NORM, ("f = Add(v, e)\n  r = Sqrt(f)", "f = Sqrt(v)\n  r = Add(f, e)"))),
    (ROOTS, altered(RMS_NORM, ("s = Pow(x, two)", "s = Abs(x)"))),
    (ROOTS, altered(RMS_NORM, ("ReduceMean<axes = [2]", "ReduceMean<axes = [1]"))),
    (ROOTS, altered(RMS_NORM, ("n = Mul(x, i)", "n = Mul(s, i)"))),
    # GELU
    (GELUS, altered(GELU, ("float r = {1.41421356}", "float r = {1.5}"))),
    (GELUS, altered(GELU, ("float h = {0.5}", "float h = {0.6}"))),
    (GELUS, altered(GELU, ("float one = {1}", "float one = {0.9}"))),
    (GELUS, altered(GELU, ("a = Div(x, r)", "a = Identity(x)"))),
    (GELUS, altered(GELU, ("c = Add(b, one)", "c = Sub(b, one)"))),
    (GELUS, altered(GELU, ("d = Mul(x, c)", "d = Add(x, c)"))),
    (GELUS, altered(GELU, ("d = Mul(x, c)", "d = Mul(a, c)"))),
    (GELUS, altered(FAST_GELU, ("float k = {0.044715}", "float k = {0.05}"))),
    (GELUS, altered(FAST_GELU, ("float three = {3}", "float three = {2}"))),
    (GELUS, altered(FAST_GELU, ("float r = {0.797884561}", "float r = {0.8}"))),
    (GELUS, altered(FAST_GELU, ("c = Add(x, b)", "c = Sub(x, b)"))),
    (GELUS, altered(FAST_GELU, ("y = Mul(i, f)", "y = Add(i, f)"))),
    # hard swish
    (SWISHES, altered(HARD_SWISH, ("float six = {6}", "float six = {5}"))),
    (SWISHES, altered(HARD_SWISH, ("float three = {3}", "float three = {2}"))),
    (SWISHES, altered(HARD_SWISH, ("c = Mul(x, b)", "c = Mul(a, b)"))),
    # rotary
    (TURNED, altered(ROTARY, ("l = Sub(ac, bs)", "l = Add(ac, bs)"))),
    (TURNED, altered(ROTARY, ("r = Add(bc, as)", "r = Sub(bc, as)"))),
    (TURNED, altered(ROTARY, ("Concat<axis = 3>(l, r)", "Concat<axis = 3>(r, l)"))),
    (TURNED, altered(ROTARY, ("as = Mul(a, s)", "as = Mul(a, c)"))),
    (TURNED, altered(ROTARY_OF_PAIRS, ("l = Sub(ac, bs)", "l = Add(ac, bs)"))),
    (TURNED, altered(ROTARY_OF_PAIRS, ("Concat<axis = 4>(l1, r1)", "Concat<axis = 4>(r1, l1)"))),
    (TURNED, rotary_of_halves(twist=0.01)),
    (TURNED, altered(HALVES, ("n = Neg(b)\n  r = Concat<axis = 3>(n, a)", "n = Neg(a)\n  r = Concat<axis = 3>(b, n)"))),
    (TURNED, altered(HALVES, ("Concat<axis = 3>(n, a)", "Concat<axis = 3>(a, n)"))),
    (TURNED, altered(HALVES, ("y = Add(xc, rs)", "y = Sub(xc, rs)"))),
    (TURNED, altered(HALVES, ("rs = Mul(r, s)", "rs = Mul(r, c)"))),
]  # fmt: skip


ALTERED_BEFORE = [
    altered(ATTENTION, ("q1 = Reshape(q, qs)\n  q2 = Transpose<perm = [0,2,1,3]>(q1)", "q2 = Reshape(q, qs)"), ("int64[4] qs = {2,5,3,4}", "int64[4] qs = {2,3,5,4}")),
    altered(ATTENTION, ("s = MatMul(q2, k2)", "q3 = Relu(q2)\n  s = MatMul(q3, k2)")),
    altered(BY_HEAD, ("o = MatMul(p, v)", "v1 = Relu(v)\n  o = MatMul(p, v1)")),
]  # fmt: skip
"""What attention is given is altered; what it does with that is not."""


def test_there_are_fifty_near_misses() -> None:
    assert len(NEARLY) >= 50
    assert len({model_bytes(text) for _, text in NEARLY}) == len(NEARLY)


@pytest.mark.unit
@pytest.mark.parametrize(("forbidden", "text"), NEARLY)
def test_near_misses_stay_out(forbidden: set[str], text: str) -> None:
    assert not operators(text) & forbidden


@pytest.mark.smt
@pytest.mark.parametrize("text", ALTERED_BEFORE)
def test_of_a_block_with_altered_inputs_the_rest_is_recognized(text: str) -> None:
    hits = [hit for hit in recognized(text) if hit.target.operator.removeprefix("::") in ATTENTIONS]
    assert hits
    assert not whole(text) & ATTENTIONS
    assert all(prove(hit.rule, REGISTRY, seconds=60).status == "proved" for hit in hits)


@pytest.mark.smt
def test_a_guard_against_what_is_no_number_is_not_dropped() -> None:
    hits = recognized(GUARDED)
    assert hits
    for hit in hits:
        assert ("IsNaN", "") in hit.target.operators
        assert prove(hit.rule, REGISTRY, seconds=60).status == "proved"
