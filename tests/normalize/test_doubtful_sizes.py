# pyright: basic
"""Sizes that seem to follow from others and do not: what is tidied answers as the original does."""

from __future__ import annotations

import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from superopt.ir.onnx import parse
from superopt.search.tidy import tidy
from tests.normalize.models import model
from tests.rewrite.taking import run

pytestmark = pytest.mark.ort

X = np.arange(24, dtype=np.float32).reshape(4, 6)
FOUND = """
    nz = NonZero(v)
    turned = Transpose(nz)
    nf = Cast<to = 1>(turned)
"""
CASES = {
    "steps are an input": (
        17,
        """g (float[n, m] x, int64[1] steps) => (float[p, q] z) <int64[1] st = {0}, int64[1] en = {2147483648},
        int64[1] ax = {0}> { y = Slice(x, st, en, ax, steps) sx = Shape(x) z = Expand(y, sx) }""",
        {"x": X[:3], "steps": np.array([3])},
    ),
    "axes are an input": (
        17,
        """g (float[n, m] x, int64[1] axes) => (float[p, q] z) <int64[1] st = {1}, int64[1] en = {2},
        int64[1] one = {1}> { y = Slice(x, st, en, axes) sx = Shape(x) m1 = Gather(sx, one)
        t = Concat<axis = 0>(one, m1) z = Expand(y, t) }""",
        {"x": X, "axes": np.array([1])},
    ),
    "onnx types Slice wrongly": (
        10,
        """g (float[n, m] x) => (float[p, q] z) <int64[1] a = {1}, int64[1] b = {2}>
        { y = Slice(x, a, b) s = Shape(x) z = Expand(y, s) }""",
        {"x": X},
    ),
    "nothing is found": (
        17,
        f"""g (float[a] v, float[1, 6] w, int64[1] t, float[g, h] q, float[30] u) => (float[p, r] out)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] rest = {{-1}}> {{
            {FOUND}
            y = MatMul(nf, w)
            s = Shape(nf)
            k = Gather(s, zero)
            tt = Concat<axis = 0>(k, t)
            z = Reshape(y, tt)
            cc = Concat<axis = 0>(z, q)
            sc = Shape(cc)
            d1 = Gather(sc, one)
            t3 = Concat<axis = 0>(rest, d1)
            out = Reshape(u, t3)
        }}""",
        {
            "v": np.zeros(2, np.float32),
            "w": np.ones((1, 6), np.float32),
            "t": np.array([5]),
            "q": np.ones((2, 5), np.float32),
            "u": np.arange(30, dtype=np.float32),
        },
    ),
    "a product of which only the shape is read": (
        17,
        f"""g (float[p] v, float[2, n] a) => (int64[k] sy, float[r, s] z) <int64[1] one = {{1}}> {{
            {FOUND}
            y = MatMul(a, nf)
            sy = Shape(y)
            sa = Shape(a)
            n1 = Gather(sa, one)
            tt = Concat<axis = 0>(n1, one)
            z = Expand(nf, tt)
        }}""",
        {"v": np.ones(1, np.float32), "a": np.ones((2, 3), np.float32)},
    ),
    "onnx types NonZero of a number wrongly": (
        13,
        """g (float x, float[q] w) => (float[r, s] z) <int64[1] zero = {0}, int64[1] two = {2}>
        { y = NonZero(x) s = Shape(y) r = Gather(s, zero) t = Concat<axis = 0>(r, two) z = Reshape(w, t) }""",
        {"x": np.array(3.0, np.float32), "w": np.ones(2, np.float32)},
    ),
    "a size that is 0 copies": (
        17,
        f"""g (float[a] v, float[6, 4] x) => (float[r, s] z) <int64[1] zero = {{0}}, int64[1] rest = {{-1}}> {{
            {FOUND}
            s = Shape(nf)
            k = Gather(s, zero)
            t = Concat<axis = 0>(k, rest)
            z = Reshape(x, t)
        }}""",
        {"v": np.zeros(2, np.float32), "x": X.reshape(6, 4)},
    ),
}


CASES["a size that is 0 copies, and inference finds no shape"] = (13, *CASES["a size that is 0 copies"][1:])


@pytest.mark.parametrize("name", CASES)
def test_the_tidied_model_answers_as_the_original(name: str) -> None:
    opset, text, feeds = CASES[name]
    data = model(text, opset=opset)
    before, after = run(data, feeds), run(tidy(data).model, feeds)
    assert len(before) == len(after)
    for a, b in zip(before, after, strict=True):
        assert a.shape == b.shape
        assert np.array_equal(a, b)


def test_a_target_in_an_attribute_is_read_by_nobody() -> None:
    """As the first opsets had it."""
    nodes = [helper.make_node("Reshape", ["x"], ["y"], shape=[-1])]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m"])
    graph = helper.make_graph(nodes, "g", [given], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 4)], ir_version=3).SerializeToString()
    assert [node.op for node in parse(data).graph.nodes] == ["Reshape"]


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("MatMul", ["x", "x", "x"], {}),
        ("Flatten", ["x"], {"axis": "first"}),
        ("Shape", ["x"], {"start": "first"}),
        ("Slice", ["x"], {"starts": 0, "ends": 1}),
        ("Transpose", ["x"], {"perm": "turned"}),
    ],
)
def test_what_is_malformed_teaches_nothing(op: str, inputs: list[str], attributes: dict) -> None:
    """Whether it runs is for onnxruntime to say."""
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", "m"])
    node = helper.make_node(op, inputs, ["y"], **attributes)
    graph = helper.make_graph([node], "g", [given], [onnx.ValueInfoProto(name="y")])
    opset = helper.make_opsetid("", 9 if op == "Slice" else 17)
    proto = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    assert len(parse(proto.SerializeToString()).graph.nodes) == 1


def test_many_operands_of_one_operator_take_no_longer() -> None:
    names = ["x", "y"] * 1500
    nodes = [helper.make_node("Max", names, ["a"]), helper.make_node("Sum", ["a", *names], ["b"])]
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, list(d)) for n, d in (("x", "pq"), ("y", "rs"))]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "ab"]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", given, results), opset_imports=[helper.make_opsetid("", 17)]
    )

    started = time.monotonic()
    parse(proto.SerializeToString())
    assert time.monotonic() - started < 5.0
