# pyright: basic
"""What is tidied for CUDA alone is in the result, is told, and can be made again from the report."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

from superopt.search.audit import audit
from tests.search.counted import predicted, saved
from tests.search.test_recorded_ladder import SHIPPED

pytestmark = pytest.mark.ort

QUESTION = """
    d{i} = Cast<to=1>(x{i}) b{i} = IsInf(d{i}) n{i} = Cast<to=7>(b{i}) s{i} = ReduceSum<keepdims=0>(n{i})
    c{i} = Greater(s{i}, zero) w{i} = Where(c{i}, less, most) m{i} = Neg(w{i})
    l{i} = Cast<to=10>(m{i}) h{i} = Cast<to=10>(w{i}) y{i} = Clip(x{i}, l{i}, h{i})
    a{i} = Add(y{i}, three) k{i} = Clip(a{i}, none, six) p{i} = Mul(y{i}, k{i}) x{j} = Div(p{i}, six)
"""
"""And a HardSwish spelled out, so that there is something that prices know of."""
STAGES = 4


def network(folder: Path) -> Path:
    body = "".join(QUESTION.format(i=i, j=i + 1) for i in range(STAGES))
    proto = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float16[256, 512] x0) => (float16[256, 512] x{STAGES})
        <int64 zero = {{0}}, float less = {{64504}}, float most = {{65504}},
         float zero_ = {{0}}, float three_ = {{3}}, float six_ = {{6}}>
        {{ none = Cast<to=10>(zero_) three = Cast<to=10>(three_) six = Cast<to=10>(six_) {body} }}"""
    )
    return saved(folder / "model.onnx", proto)


def test_questions_about_infinity_are_asked_for_cuda_and_the_audit_asks_them_again(tmp_path: Path) -> None:
    model = network(tmp_path)
    report = predicted(model, tmp_path, SHIPPED, budget=2.0)
    names = [rewrite.name for rewrite in report.rewrites]
    assert report.returned == "optimized"
    assert names.count("any-infinite-by-shrinking") == names.count("limits-of-infinite") == STAGES
    ops = [node.op_type for node in onnx.load(tmp_path / "out.onnx").graph.node]
    assert "IsInf" not in ops
    assert ops.count("Shrink") == STAGES
    found = audit(model, tmp_path / "out.onnx", tmp_path / "report.json", (), (), lambda *_: None)
    assert found.confirmed, found.problems
    assert found.passes["limits-of-infinite"] == STAGES
