# pyright: basic
"""A mask has a length of its own, which is that of the scores, or 1: rules see it expanded."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

from superopt.ir.graph import Node
from superopt.rewrite.reading import Reading
from superopt.runtime.library import errors
from tests.rewrite.taking import Opened, difference, opened, rules, run

ATTENTION = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
g (float[b, s, 8] x, float[k, 1, 1, l] mask) => (float[n, m, w] y)
<int64[4] heads = {0, 0, 2, 4},
 float root = {2}, float one = {1}, float large = {-1000}> {
    qm = MatMul(x, wq)
    km = MatMul(x, wk)
    vm = MatMul(x, wv)
    q = Add(qm, bq)
    k1 = Add(km, bk)
    v = Add(vm, bv)
    qh = Reshape(q, heads)
    kh = Reshape(k1, heads)
    vh = Reshape(v, heads)
    qt = Transpose<perm = [0, 2, 1, 3]>(qh)
    kt = Transpose<perm = [0, 2, 3, 1]>(kh)
    vt = Transpose<perm = [0, 2, 1, 3]>(vh)
    scores = MatMul(qt, kt)
    scaled = Div(scores, root)
    hidden = Sub(one, mask)
    bias = Mul(hidden, large)
    sum = Add(scaled, bias)
    p = Softmax<axis = 3>(sum)
    a = MatMul(p, vt)
    at = Transpose<perm = [0, 2, 1, 3]>(a)
    flat = Shape(x)
    y = Reshape(at, flat)
}"""
RULE = "attention-block-masked-by-key"


def attention(text: str = ATTENTION) -> bytes:
    model = parser.parse_model(text)
    rng = np.random.default_rng(0)
    for name, sizes in (*((f"w{c}", (8, 8)) for c in "qkv"), *((f"b{c}", 8) for c in "qkv")):
        model.graph.initializer.append(onnx.numpy_helper.from_array(rng.normal(size=sizes).astype(np.float32), name))
    return model.SerializeToString()


def node(start: Opened, name: str) -> Node:
    found = start.piece.names[name].node
    assert found is not None
    return found


def read(start: Opened, name: str) -> Reading | str:
    return start.rewriter.reader.read(node(start, name))


@pytest.mark.unit
def test_the_mask_is_read_as_long_as_the_scores() -> None:
    start = opened(attention())
    reading = read(start, "sum")
    assert isinstance(reading, Reading)
    scores, mask = reading.operands
    assert scores == start.piece.names["scaled"]
    assert mask is not None
    assert mask.node is not None
    assert (mask.node.op, mask.node.inputs[0]) == ("Expand", start.piece.names["bias"])
    assert str(mask.type) == "float32[b, 1, 1, s]"
    assert start.rewriter.reader.read(node(start, "sum")) is reading, "one expansion for all who read"


@pytest.mark.unit
def test_sizes_that_are_known_to_fit_are_left_alone() -> None:
    start = opened(attention(ATTENTION.replace("float[k, 1, 1, l] mask", "float[1, 1, 1, 1] mask")))
    reading = read(start, "sum")
    assert isinstance(reading, Reading)
    assert reading.operands == node(start, "sum").inputs


@pytest.mark.unit
def test_a_size_that_no_input_has_cannot_be_asked_for() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[n, 4] x, float[m, 4] y, bool[l] c) => (float[p, q] z) {
        some = Compress<axis = 0>(x, c)
        all = Relu(some)
        z = Add(all, y)
    }"""
    assert isinstance(read(opened(parser.parse_model(text).SerializeToString()), "z"), str)


@pytest.mark.ort
@pytest.mark.parametrize("opset", [13, 17])
def test_attention_with_a_mask_of_any_length_is_one_operator(opset: int) -> None:
    data = attention(ATTENTION.replace('"": 17', f'"": {opset}'))
    start = opened(data)
    found = start.matches(start.piece, rules(RULE))
    assert found
    after = start.exported(start.take(start.piece, found[0]))
    kinds = [n.op_type for n in onnx.load_from_string(after).graph.node]
    assert kinds.count("Attention") == 1
    assert kinds.count("Expand") == 2, "to the length of the scores, and over queries"
    rng = np.random.default_rng(1)
    for batch, length, masks, shown in (
        (1, 1, 1, 1),
        (2, 5, 2, 5),
        (2, 5, 1, 5),
        (2, 5, 2, 1),
        (3, 4, 1, 1),
        (1, 7, 1, 7),
    ):
        feeds = {
            "x": rng.normal(size=(batch, length, 8)).astype(np.float32),
            "mask": (rng.random((masks, 1, 1, shown)) > 0.3).astype(np.float32),
        }
        assert not difference(run(data, feeds), run(after, feeds)), (batch, length, masks, shown)
    for masks, shown in ((2, 3), (3, 5)):
        feeds = {"x": np.ones((2, 5, 8), np.float32), "mask": np.ones((masks, 1, 1, shown), np.float32)}
        for each in (data, after):
            with pytest.raises(errors()):
                run(each, feeds)
