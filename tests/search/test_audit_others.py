# pyright: basic
"""Other results: an original that came back, external data, bodies, operators beyond ONNX, rules of the user."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from onnx import helper, parser

from superopt.rewrite.text import format_rule
from superopt.search.rulebook import open_rulebook
from tests.search.rewritten import (
    AUDITED_RULES,
    Rewritten,
    audited,
    book,
    branches,
    convolutions,
    problem,
    rewrite,
    with_external_data,
)  # fmt: skip

pytestmark = [pytest.mark.ort, pytest.mark.usefixtures("rules_once")]


def test_the_original_must_be_its_own_bytes(result: Rewritten) -> None:
    report = result.told()
    original = report.model_copy(update={"returned": "original", "after": report.before})
    shutil.copyfile(result.original, result.optimized)
    result.tell(original)
    found = audited(result)
    assert found.confirmed
    assert (found.returned, found.nodes, found.weights) == ("original", 8, None)
    result.optimized.write_bytes(result.original.read_bytes() + b"\xfa\x3f\x03abc")
    assert "these are others" in problem(result)


def test_external_data_counts_as_content(tmp_path: Path) -> None:
    result = rewrite(tmp_path, with_external_data(convolutions(), tmp_path), AUDITED_RULES[:1], growth=1 << 20)
    assert audited(result).confirmed
    data = tmp_path / "optimized.onnx.data"
    data.write_bytes(data.read_bytes()[:-1] + b"\x00")
    assert "units in the last place apart" in problem(result)


def test_a_default_of_an_input_keeps_its_data_wherever_the_result_goes(tmp_path: Path) -> None:
    proto = with_external_data(convolutions(), tmp_path)
    proto.graph.input.append(helper.make_tensor_value_info("k2", onnx.TensorProto.FLOAT, [16, 3, 3, 3]))
    result = rewrite(tmp_path, proto, AUDITED_RULES[1:])
    (tmp_path / "elsewhere").mkdir()
    for name in ("optimized.onnx", "optimized.onnx.data"):
        shutil.copyfile(tmp_path / name, tmp_path / "elsewhere" / name)
    found = audited(Rewritten(result.original, tmp_path / "elsewhere" / "optimized.onnx", result.report))
    assert found.confirmed, found.problems
    assert found.weights is not None
    assert found.weights.original == 2


def test_external_data_of_an_original_that_came_back(tmp_path: Path) -> None:
    proto = with_external_data(convolutions(), tmp_path)
    result = rewrite(tmp_path, proto, ())
    other = tmp_path / "other"
    other.mkdir()
    shutil.copyfile(tmp_path / "weights.bin", other / "weights.bin")
    shutil.copyfile(result.original, other / "optimized.onnx")
    report = result.told()
    result.tell(report.model_copy(update={"returned": "original", "after": report.before}))
    returned = Rewritten(result.original, other / "optimized.onnx", result.report)
    assert audited(returned).confirmed
    (other / "weights.bin").write_bytes((tmp_path / "weights.bin").read_bytes()[:-1] + b"\x00")
    assert "is another data file than" in problem(returned)


def test_bodies_are_replayed_by_the_way_to_them(tmp_path: Path) -> None:
    """Both nodes have one name: the way leads over what they compute."""
    result = rewrite(tmp_path, branches(), ["linear-matmul-matmul-to-matmul-matmul-4574"] * 4)
    assert sorted(region.where for region in result.told().trace) == [
        "p/else_branch/", "p/then_branch/", "q/else_branch/", "q/then_branch/",
    ]  # fmt: skip
    found = audited(result)
    assert found.confirmed, found.problems
    assert found.steps == 4
    proto = onnx.load(result.optimized)
    proto.graph.node[1].attribute[0].g.node[-1].op_type = "Neg"
    result.forge(proto)
    where = "If 'twin' that computes q: attribute 'then_branch': g: node Abs '' that computes qa: op_type"
    assert where in problem(result)


GELU = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y)
<float h = {0.5}, float o = {1}, float r = {1.4142135}> {
  d = Div(x, r) e = Erf(d) f = Add(e, o) m = Mul(x, h) y = Mul(m, f)
}"""


def test_operators_beyond_onnx_after_standard_are_refused(tmp_path: Path) -> None:
    result = rewrite(tmp_path, parser.parse_model(GELU), ["gelu-to-microsoft-gelu"])
    found = audited(result)
    assert found.confirmed, found.problems
    assert found.notes == [
        "operators that ONNX does not define and the original does not have: 1 × com.microsoft::Gelu"
    ]
    report = result.told()
    result.tell(report.model_copy(update={"options": {**report.options, "allow": "standard"}}))
    assert "standard operators alone were allowed, there are 1 × com.microsoft::Gelu" in problem(result)


def test_a_raised_opset_is_raised_again(tmp_path: Path) -> None:
    result = rewrite(tmp_path, convolutions(), AUDITED_RULES, opset=18)
    found = audited(result)
    assert found.confirmed, found.problems
    assert found.notes == ["the opset was raised to 18 by onnx's own converter, which is not proved"]
    report = result.told()
    result.tell(report.model_copy(update={"options": {**report.options, "opset": 0}}))
    assert "opset_import '': version: expected 17, found 18" in problem(result)


def test_rules_of_the_user_are_given_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = book()  # other tests have it, too: it is read before there are none
    monkeypatch.setattr("superopt.search.rulebook.rule_files", lambda files=(): list(files))
    mine = replace(shipped.rules.patterns["linear-matmul-matmul-to-matmul-matmul-4574"].rule, name="my-chain")
    rules = tmp_path / "mine.rules"
    rules.write_text(format_rule(mine))
    result = rewrite(tmp_path, convolutions(), ["my-chain"], open_rulebook([rules]), rules=(rules,))
    found = audited(result, (rules,))
    assert found.confirmed, found.problems
    assert problem(result).startswith(f"there is no proved rule my-chain; the report used rules of {rules} besides")
    rules.write_text(format_rule(mine).replace("digest=", "digest=0"))
    assert audited(result, (rules,)).problems[0] == "rule my-chain is stale"
