# pyright: basic
"""What is rewritten takes sizes of 0 where the original takes them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import parser

from superopt.ir.graph import make_node, make_parameter
from superopt.ir.types import DType, TensorType
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.emptiness import may_be_zero, refuse_empty
from superopt.rewrite.sizes import Sizes
from superopt.runtime.careful import Elsewhere, Opening
from superopt.runtime.deployment import Deployment
from tests.rewrite.taking import opened, ran

RUNTIME = "com.microsoft"


@pytest.mark.unit
@pytest.mark.parametrize(
    ("op", "left", "right", "attributes", "fails"),
    [
        ("MatMul", ("n", 4, 3), (3, 5), {}, False),
        ("MatMul", ("n", 4, 3), (1, 3, 5), {}, False),
        ("MatMul", ("n", 4, 3), ("n", 3, 5), {}, False),
        ("MatMul", (4, 3), (3, "n"), {}, False),
        ("MatMul", (4, 3), ("n", 3, 5), {}, True),
        ("MatMul", (1, 4, 3), ("n", 3, 5), {}, True),
        ("MatMul", ("n", 2, 4, 3), (2, 3, 5), {}, True),
        ("MatMul", ("n", 4, 3), (3,), {}, True),
        ("FusedMatMul", ("n", 3, 4), ("n", 3, 5), {"transA": 1}, False),
        ("FusedMatMul", ("n", 2, 3), (2, 3, 5), {"transBatchA": 1}, True),
        ("FusedMatMul", (2, "n", 3), (2, 3, 5), {"transBatchA": 1}, True),
        ("FusedMatMul", (2, 4, 3), ("n", 2, 3), {"transBatchB": 1}, True),
        ("Einsum", ("n", 3), (3, 5), {"equation": "ij,jk->ik"}, True),
        ("Add", ("n", 3), (3,), {}, False),
    ],
)
def test_operators_that_fail_for_sizes_of_0(op, left, right, attributes, fails) -> None:
    operands = [make_parameter(k, TensorType(DType.FLOAT32, shape))[0] for k, shape in enumerate((left, right))]
    domain = RUNTIME if op == "FusedMatMul" else ""
    made = make_node(op, operands, attributes, [TensorType(DType.FLOAT32, None)], domain=domain)
    refuse_empty(made, Sizes(), frozenset({"n"}))
    if not fails:
        refuse_empty(made, Sizes(), frozenset())
        return
    with pytest.raises(Conflict, match="fails where n is 0"):
        refuse_empty(made, Sizes(), frozenset())


@pytest.mark.unit
def test_which_sizes_may_be_0() -> None:
    x = make_parameter(0, TensorType(DType.FLOAT32, ("n", "m", 3)))[0]
    shape = Sizes().shape(x)
    assert shape is not None
    n, m, three = shape
    assert may_be_zero(n, frozenset())
    assert not may_be_zero(n, frozenset({"n"}))
    assert not may_be_zero(three, frozenset())
    assert may_be_zero(n * m, frozenset({"m"}))
    assert not may_be_zero(n * m, frozenset({"m", "n"}))
    assert not may_be_zero(n + 1, frozenset())
    assert may_be_zero(n + m, frozenset())
    assert not may_be_zero(n + m, frozenset({"m"}))
    assert may_be_zero(n - 1, frozenset())


IMAGES = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, 3, 4, 5] x) => (float[n, 6, 4, 5] y) <float[6, 3, 1, 1] w, float[6] b, float[6, 3, 1, 1] v> {
    p = Conv(x, w, b)
    q = Conv(x, v)
    r = Relu(q)
    y = Add(p, r)
}"""
TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[n, s, 8] x) => (float[n, s, 8] y) <float[8, 8] wq, float[8, 8] wk, float[8, 8] wv, float[8] bq,
    int64[4] heads = {0, 0, 2, 4}, int64[3] rows = {0, 0, 8}> {
    q0 = MatMul(x, wq)
    q1 = Add(q0, bq)
    q2 = Reshape(q1, heads)
    q = Transpose<perm = [0, 2, 1, 3]>(q2)
    k1 = MatMul(x, wk)
    k2 = Reshape(k1, heads)
    k = Transpose<perm = [0, 2, 3, 1]>(k2)
    v1 = MatMul(x, wv)
    v2 = Reshape(v1, heads)
    v = Transpose<perm = [0, 2, 1, 3]>(v2)
    scores = MatMul(q, k)
    weights = Softmax<axis = 3>(scores)
    seen = MatMul(weights, v)
    back = Transpose<perm = [0, 2, 1, 3]>(seen)
    y = Reshape(back, rows)
}"""


def filled(text: str) -> bytes:
    """With weights drawn."""
    made = parser.parse_model(text)
    rng = np.random.default_rng(0)
    for value in made.graph.value_info:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        drawn = rng.standard_normal(shape).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(drawn, value.name))
    del made.graph.value_info[:]
    return made.SerializeToString()


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Elsewhere]:
    found = Elsewhere()
    yield found
    found.close()


@pytest.mark.ort
@pytest.mark.parametrize(("text", "shapes"), [(IMAGES, [(0, 3, 4, 5)]), (TEXT, [(0, 2, 8), (2, 0, 8)])])
def test_every_rewrite_takes_what_the_original_takes(elsewhere, text, shapes) -> None:
    data = filled(text)
    free, bound = (opened(data, Vocabulary(never_empty=never)) for never in (None, frozenset[str]()))
    left = bound.matches(bound.piece)
    assert 0 < len(left) < len(free.matches(free.piece)), "some are left out, and some are not"
    for found in left:
        made, name = bound.exported(bound.take(bound.piece, found)), found[0].pattern.rule.name
        for shape in shapes:
            feeds = {"x": np.zeros(shape, np.float32)}
            elsewhere.run(Opening(made, Deployment(level="disable"), None, {}), feeds)  # it raises where that dies
            answers = ran(made, feeds)
            assert answers is None or answers[0].size == 0, name
