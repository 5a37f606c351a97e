# pyright: basic
"""`superopt audit` and `superopt optimize --explain` as people and scripts meet them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import onnx
import pytest

from superopt.report import AuditReport, ExplainReport, Report
from tests.cli.test_main import QUICK, TIDY, run, save
from tests.search.rewritten import AUDITED_RULES, Rewritten, convolutions, rewrite

pytestmark = pytest.mark.ort


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rewritten:
    monkeypatch.chdir(tmp_path)
    return rewrite(Path(), convolutions(), AUDITED_RULES)


def test_a_confirmed_result_names_what_it_rests_on(result: Rewritten, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("audit", "original.onnx", "optimized.onnx", "report.json", "--report", "audit.json") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "passes made again: 1 × constant-folding, 1 × identity\n" in err
    for rule in AUDITED_RULES:
        assert f"rule {rule}, 1 ×: unbounded z3=" in err
    assert "steps made again: 2 in 2 regions, each where and as it is told\n" in err
    assert "constants: 1 computed by passes again, bit for bit; 2 combined again, bit for bit\n" in err
    assert err.splitlines()[-1].startswith("confirmed: optimized.onnx is what 2 passes and 2 steps of 2 proved rules")
    assert AuditReport.model_validate_json(Path("audit.json").read_text()).confirmed


def test_a_tampered_result_exits_with_1_and_says_why(result: Rewritten, capsys: pytest.CaptureFixture[str]) -> None:
    proto = onnx.load("optimized.onnx")
    proto.graph.node[0].op_type = "Relu"
    del proto.graph.node[0].input[1:], proto.graph.node[0].attribute[:]
    result.forge(proto)
    assert run("audit", "original.onnx", "optimized.onnx", "report.json", "--json", "--quiet") == 1
    out, err = capsys.readouterr()
    assert err == ""
    found = AuditReport.model_validate_json(out)
    assert not found.confirmed
    assert run("audit", "original.onnx", "optimized.onnx", "report.json") == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"not confirmed: {found.problems[0]}"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("original.onnx", "optimized.onnx", "none.json"), "none.json: cannot be read: No such file"),
        (("original.onnx", "optimized.onnx", "original.onnx"), "original.onnx: is no JSON"),
        (("original.onnx", "none.onnx", "report.json"), "none.onnx: no such file"),
        (("original.onnx", "optimized.onnx"), "the following arguments are required: REPORT.json"),
        (("original.onnx", "optimized.onnx", "report.json", "--report", "report.json"), "would replace report.json"),
        (("original.onnx", "optimized.onnx", "report.json", "--rules", "no.rules"), "no such file or folder of rules"),
        (("original.onnx", "optimized.onnx", "report.json", "--specs", "no"), "is no folder of operator definitions"),
    ],
)
def test_bad_input_exits_with_2(
    result: Rewritten, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    assert run("audit", *arguments, "--quiet") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("superopt: ")
    assert complaint in err.splitlines()[0]


def test_whatever_optimize_returns_is_confirmed(result: Rewritten) -> None:
    """Rewritten or not: the clock of a busy machine may say either."""
    wanted = ("-o", "o.onnx", "--report", "r.json", "--accept", "not-slower", "--quiet", *QUICK)
    assert run("optimize", "original.onnx", *wanted) == 0
    assert run("audit", "original.onnx", "o.onnx", "r.json") == 0


def test_explain_alone_answers_on_stdout_and_writes_nothing(
    result: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(os.listdir())
    assert run("optimize", "original.onnx", "--explain", "conv1", "--explain", "a", *QUICK[:2]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "conv1: Conv that computes c1: float32[1, 16, 6, 6]\n" in out
    assert "  matches   conv-factor-input " in out
    assert "  no match  conv-pointwise-to-matmul " in out
    assert "  pass identity: Identity is its operand x\n  no rule may touch it: it is gone after the passes\n" in out
    assert "\x1b" not in out
    assert run("optimize", "original.onnx", "--explain", "c1:conv-factor-input", "--json", *QUICK[:2]) == 0
    (found,) = ExplainReport.model_validate_json(capsys.readouterr().out).explained
    assert found.detail[0] == "rule conv-factor-input"
    assert sorted(os.listdir()) == before


def test_explain_of_an_unknown_node_is_refused_before_the_work(
    result: Rewritten, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("optimize", "original.onnx", "-o", "o.onnx", "--explain", "conv7", *QUICK) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("superopt: --explain conv7: no node has that name")
    assert "near it: conv" in err
    assert not Path("o.onnx").exists()


def test_explain_after_a_run_is_part_of_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "m.onnx", TIDY)
    assert run("optimize", "m.onnx", "-o", "o.onnx", "--explain", "y", "--report", "r.json", *QUICK) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Relu:y: Relu that computes y: float32[n, 3]\n")
    assert "latency" in err
    report = Report.model_validate(json.loads(Path("r.json").read_text()))
    assert [node.asked for node in report.explained] == ["y"]
