# pyright: basic
"""Blocks of networks as text, right and altered, and what mining takes them for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache

import numpy as np
import onnx.parser
from onnx import shape_inference

import specs
from superopt.ir.onnx import parse
from superopt.mine.cut import Grower
from superopt.mine.lift import lifted
from superopt.mine.lookup import Hit, Lookup
from superopt.normalize import normalize
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.whole import piece_of

REGISTRY = specs.load()

ATTENTION = """
g (float[2,5,12] q, float[2,7,12] k, float[2,7,12] v, float[2,1,5,7] m) => (float[2,5,12] y)
<int64[4] qs = {2,5,3,4}, int64[4] ks = {2,7,3,4}, int64[3] ys = {2,5,12}, float c = {0.37}>
{
  q1 = Reshape(q, qs)
  q2 = Transpose<perm = [0,2,1,3]>(q1)
  k1 = Reshape(k, ks)
  k2 = Transpose<perm = [0,2,3,1]>(k1)
  v1 = Reshape(v, ks)
  v2 = Transpose<perm = [0,2,1,3]>(v1)
  s = MatMul(q2, k2)
  t = Mul(s, c)
  u = Add(t, m)
  p = Softmax<axis = 3>(u)
  o = MatMul(p, v2)
  o1 = Transpose<perm = [0,2,1,3]>(o)
  y = Reshape(o1, ys)
}"""

PACKED = """
g (float[2,5,6] x) => (float[2,5,12] y)
<float[6,36] w, float[36] b, int64[5] qs = {2,5,3,3,4}, int64[3] ks = {6,5,4}, int64[4] kt = {2,3,4,5},
 int64[3] ys = {2,5,12}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3},
 float c = {0.6}>
{
  p0 = MatMul(x, w)
  p1 = Add(p0, b)
  p2 = Reshape(p1, qs)
  p3 = Transpose<perm = [2,0,3,1,4]>(p2)
  q0 = Slice(p3, zero, one, zero)
  q1 = Squeeze(q0, zero)
  k0 = Slice(p3, one, two, zero)
  v0 = Slice(p3, two, three, zero)
  v1 = Squeeze(v0, zero)
  k1 = Reshape(k0, ks)
  k2 = Transpose<perm = [0,2,1]>(k1)
  k3 = Reshape(k2, kt)
  q2 = Mul(q1, c)
  k4 = Mul(k3, c)
  s = MatMul(q2, k4)
  p = Softmax<axis = 3>(s)
  o = MatMul(p, v1)
  o1 = Transpose<perm = [0,2,1,3]>(o)
  y = Reshape(o1, ys)
}"""

LAYER_NORM = """
g (float[2,5,12] x) => (float[2,5,12] y)
<float e = {0.001}, float two = {2}, float[12] w = {1,2,3,4,5,6,7,8,9,1,2,3}, float[12] b = {3,1,4,1,5,9,2,6,5,3,5,8}>
{
  a = ReduceMean<axes = [2], keepdims = 1>(x)
  d = Sub(x, a)
  s = Mul(d, d)
  v = ReduceMean<axes = [2], keepdims = 1>(s)
  f = Add(v, e)
  r = Sqrt(f)
  n = Div(d, r)
  g = Mul(n, w)
  y = Add(g, b)
}"""

RMS_NORM = """
g (float[2,5,12] x) => (float[2,5,12] y)
<float e = {0.001}, float one = {1}, float two = {2}, float[12] w = {1,2,3,4,5,6,7,8,9,10,11,12}>
{
  s = Pow(x, two)
  v = ReduceMean<axes = [2], keepdims = 1>(s)
  f = Add(v, e)
  r = Sqrt(f)
  i = Div(one, r)
  n = Mul(x, i)
  y = Mul(w, n)
}"""

GELU = """
g (float[2,5,12] x) => (float[2,5,12] y)
<float h = {0.5}, float one = {1}, float r = {1.41421356}>
{
  a = Div(x, r)
  b = Erf(a)
  c = Add(b, one)
  d = Mul(x, c)
  y = Mul(d, h)
}"""

FAST_GELU = """
g (float[2,5,12] x) => (float[2,5,12] y)
<float h = {0.5}, float one = {1}, float k = {0.044715}, float r = {0.797884561}, float three = {3}>
{
  a = Pow(x, three)
  b = Mul(a, k)
  c = Add(x, b)
  d = Mul(c, r)
  e = Tanh(d)
  f = Add(e, one)
  i = Mul(x, h)
  y = Mul(i, f)
}"""

HARD_SWISH = """
g (float[2,5,12] x) => (float[2,5,12] y)
<float three = {3}, float zero = {0}, float six = {6}>
{
  a = Add(x, three)
  b = Clip(a, zero, six)
  c = Mul(x, b)
  y = Div(c, six)
}"""

ROTARY = """
g (float[2,3,5,8] x, float[2,5,4] cos, float[2,5,4] sin) => (float[2,3,5,8] y)
<int64[1] one = {1}, int64[1] zero = {0}, int64[1] half = {4}, int64[1] all = {8}, int64[1] last = {3}>
{
  c = Unsqueeze(cos, one)
  s = Unsqueeze(sin, one)
  a = Slice(x, zero, half, last)
  b = Slice(x, half, all, last)
  ac = Mul(a, c)
  bs = Mul(b, s)
  bc = Mul(b, c)
  as = Mul(a, s)
  l = Sub(ac, bs)
  r = Add(bc, as)
  y = Concat<axis = 3>(l, r)
}"""


def _table(function: Callable[[float], float], rows: int = 5, half: int = 4, twist: float = 0.0) -> str:
    """Numbers of a rotary embedding's table as wide as a head: both halves alike, but for a twist of the last one."""
    found = [[function((row + 1) * 0.3**pair) for pair in range(half)] * 2 for row in range(rows)]
    found[-1][-1] += twist
    return ", ".join(f"{x:.4f}" for row in found for x in row)


def rotary_of_halves(twist: float = 0.0) -> str:
    """As transformers writes it: x·cos + (−b, a)·sin, with tables that are as wide as a head."""
    return f"""
g (float[2,3,5,8] x) => (float[2,3,5,8] y)
<float[1,1,5,8] c = {{{_table(math.cos, twist=twist)}}}, float[1,1,5,8] s = {{{_table(math.sin)}}},
 int64[1] zero = {{0}}, int64[1] half = {{4}}, int64[1] all = {{9223372036854775807}}, int64[1] last = {{3}}>
{{
  xc = Mul(x, c)
  a = Slice(x, zero, half, last)
  b = Slice(x, half, all, last)
  n = Neg(b)
  r = Concat<axis = 3>(n, a)
  rs = Mul(r, s)
  y = Add(xc, rs)
}}"""


BY_HEAD = """
g (float[2,4,5,6] q, float[2,4,7,6] k, float[2,4,7,6] v, float[2,1,5,7] m) => (float[2,5,24] y)
<int64[3] ys = {2,5,24}, float c = {0.37}>
{
  k1 = Transpose<perm = [0,1,3,2]>(k)
  s = MatMul(q, k1)
  t = Mul(s, c)
  u = Add(t, m)
  p = Softmax<axis = 3>(u)
  o = MatMul(p, v)
  o1 = Transpose<perm = [0,2,1,3]>(o)
  y = Reshape(o1, ys)
}"""

GUARDED = BY_HEAD.replace("o = MatMul(p, v)", "n = IsNaN(p)\n  w = Where(n, z, p)\n  o = MatMul(w, v)").replace(
    "float c", "float z = {0}, float c"
)

POSITIONS_FIRST = """
g (float[5,2,12] q, float[7,2,12] k, float[7,2,12] v) => (float[5,2,12] y)
<int64[3] qs = {5,6,4}, int64[3] ks = {7,6,4}, int64[3] ys = {5,2,12}, float c = {0.37}>
{
  q0 = Mul(q, c)
  q1 = Reshape(q0, qs)
  q2 = Transpose<perm = [1,0,2]>(q1)
  k1 = Reshape(k, ks)
  k2 = Transpose<perm = [1,2,0]>(k1)
  v1 = Reshape(v, ks)
  v2 = Transpose<perm = [1,0,2]>(v1)
  s = MatMul(q2, k2)
  p = Softmax<axis = 2>(s)
  o = MatMul(p, v2)
  o1 = Transpose<perm = [1,0,2]>(o)
  y = Reshape(o1, ys)
}"""

EINSUM = """
g (float[2,5,12] q, float[2,7,12] k, float[2,7,12] v) => (float[2,5,12] y)
<int64[4] qs = {2,5,3,4}, int64[4] ks = {2,7,3,4}, int64[3] ys = {2,5,12}, float c = {0.37}>
{
  q1 = Reshape(q, qs)
  k1 = Reshape(k, ks)
  v1 = Reshape(v, ks)
  s = Einsum<equation = "bqhd,bkhd->bhqk">(q1, k1)
  t = Mul(s, c)
  p = Softmax<axis = 3>(t)
  o = Einsum<equation = "bhqk,bkhd->bqhd">(p, v1)
  y = Reshape(o, ys)
}"""

ONE_HEAD_OF_KEYS = """
g (float[2,3,5,4] q, float[2,7,4] k, float[2,7,4] v) => (float[2,3,5,4] y)
<int64[1] one = {1}, float c = {0.37}>
{
  k1 = Unsqueeze(k, one)
  k2 = Transpose<perm = [0,1,3,2]>(k1)
  v1 = Unsqueeze(v, one)
  s = MatMul(q, k2)
  t = Mul(s, c)
  p = Softmax<axis = 3>(t)
  y = MatMul(p, v1)
}"""

ROTARY_OF_PAIRS = """
g (float[2,3,5,8] x) => (float[2,3,5,8] y)
<float[5,4] c, float[5,4] s, int64[1] zero = {0}, int64[1] one = {1}, int64[1] all = {9223372036854775807},
 int64[1] last = {3}, int64[1] two = {2}, int64[1] behind = {4}, int64[4] ys = {2,3,5,8}>
{
  a = Slice(x, zero, all, last, two)
  b = Slice(x, one, all, last, two)
  ac = Mul(a, c)
  bs = Mul(b, s)
  l = Sub(ac, bs)
  as = Mul(a, s)
  bc = Mul(b, c)
  r = Add(as, bc)
  l1 = Unsqueeze(l, behind)
  r1 = Unsqueeze(r, behind)
  o = Concat<axis = 4>(l1, r1)
  y = Reshape(o, ys)
}"""


@cache
def _lookup() -> Lookup:
    return Lookup(REGISTRY)


def model_bytes(text: str, opset: int = 17) -> bytes:
    """The block as a file. Weights that it names without numbers are random."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>{_with_numbers(text)}')
    return shape_inference.infer_shapes(model, strict_mode=True).SerializeToString()


def _with_numbers(text: str) -> str:
    rng = np.random.default_rng(0)

    def filled(found: re.Match[str]) -> str:
        count = math.prod(int(n) for n in found[1].split(","))
        return f"float[{found[1]}] {found[2]} = {{{', '.join(f'{x:.3f}' for x in rng.standard_normal(count))}}}"

    head, body = text.split("{\n", 1)
    inputs, weights = head.split("<", 1) if "<" in head else (head, "")
    weights = re.sub(r"float\[([\d,]+)\] (\w+)(?= *[,>])", filled, weights)
    return f"{inputs}{'<' if weights else ''}{weights}{{\n{body}"


def recognized(text: str, opset: int = 17, *, alone: bool = False) -> list[Hit]:
    """What parts that compute the model's output are taken for; `alone`: those that read nothing but its inputs."""
    model = parse(model_bytes(text, opset))
    rewriter = Rewriter(REGISTRY, model.opset, Vocabulary(cuda=True), model.functions)
    piece = piece_of(normalize(model).graph, rewriter.constants)
    found: list[Hit] = []
    for cut in Grower(piece, rewriter).cuts():
        if cut.outputs[0] in piece.results and not (alone and any(v.node is not None for v in cut.inputs)):
            operators = [(node.op, node.domain) for node in cut.nodes]
            for part in lifted(cut, rewriter):
                found += _lookup().hits(part, operators)
    return found


def operators(text: str, opset: int = 17, *, alone: bool = False) -> set[str]:
    return {hit.target.operator.removeprefix("::") for hit in recognized(text, opset, alone=alone)}


def whole(text: str) -> set[str]:
    """What the block as a whole is taken for."""
    return operators(text, alone=True)
