# pyright: basic
"""`superopt diff`, and the pages: exit codes like diff's, the answer on stdout, pages whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from superopt.engine import pages
from superopt.errors import LimitHit
from superopt.report import DiffReport, Report
from tests.cli.test_main import QUICK, TIDY, run, save
from tests.explain.pages import Page

pytestmark = pytest.mark.ort

DONE = TIDY.replace("a = Identity(x) y = Relu(a)", "y = Relu(x)")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "a.onnx", TIDY)
    save(tmp_path / "b.onnx", DONE)
    (tmp_path / "broken.onnx").write_bytes(b"\xff\xff")
    return tmp_path


@pytest.mark.parametrize(("other", "code"), [("a.onnx", 0), ("b.onnx", 1), ("broken.onnx", 2), ("none.onnx", 2)])
def test_the_exit_code_is_that_of_diff(folder: Path, capsys: pytest.CaptureFixture[str], other: str, code: int) -> None:
    assert run("diff", "a.onnx", other) == code
    out, err = capsys.readouterr()
    assert bool(out) == (code < 2)
    assert err.startswith("superopt: ") == (code == 2)


def test_the_difference_goes_to_stdout_and_quiet_leaves_the_code(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("diff", "a.onnx", "b.onnx") == 1
    out, err = capsys.readouterr()
    assert "- a: float32[n, 3] = Identity(x)\n" in out
    assert "+ y: float32[n, 3] = Relu(x)\n" in out
    assert "\x1b" not in out
    assert err == ""
    assert run("diff", "a.onnx", "b.onnx", "--quiet") == 1
    assert capsys.readouterr() == ("", "")


def test_machines_get_a_record(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("diff", "a.onnx", "b.onnx", "--json", "--report", "d.json") == 1
    out, _ = capsys.readouterr()
    found = DiffReport.model_validate_json(out)
    assert (found.same, found.kept, found.changed, found.removed, found.added) == (False, 0, 1, 1, 0)
    assert json.loads((folder / "d.json").read_text()) == json.loads(out)


def test_models_that_cannot_run_can_be_compared(folder: Path) -> None:
    save(folder / "custom.onnx", TIDY.replace("Relu", "Nope"))
    assert run("diff", "custom.onnx", "custom.onnx") == 0
    assert run("diff", "a.onnx", "custom.onnx") == 1


def test_a_diff_can_be_drawn(folder: Path) -> None:
    assert run("diff", "a.onnx", "b.onnx", "--html", "d.html", "--quiet") == 1
    page = Page((folder / "d.html").read_text())
    assert "region-1" in page.values("id")
    assert sorted(os.listdir(folder)) == ["a.onnx", "b.onnx", "broken.onnx", "d.html"]


@pytest.mark.parametrize("command", [["diff", "a.onnx", "b.onnx"], ["optimize", "a.onnx", "-o", "o.onnx"]])
@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["--html", "no/p.html"], "the folder no does not exist"),
        (["--html", "."], "is a folder, expected a file name for the page"),
        (["--html", "a.onnx"], "--html a.onnx: would replace a.onnx"),
        (["--html", "r", "--report", "r"], "--html r: would replace r"),
    ],
)
def test_a_page_that_cannot_be_written_is_refused_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str], command: list[str], given: list[str], complaint: str
) -> None:
    before = sorted(os.listdir(folder))
    assert run(*command, *given) == 2
    assert complaint in capsys.readouterr().err
    assert sorted(os.listdir(folder)) == before


def test_optimize_writes_its_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("optimize", "a.onnx", "-o", "o.onnx", "--html", "p.html", "--json", "--quiet", *QUICK) == 0
    report = Report.model_validate_json(capsys.readouterr().out)
    assert report.profile is not None
    assert "Relu" in report.profile.before
    page = Page((folder / "p.html").read_text())
    assert report.verdict in page.text
    assert any("superopt optimize a.onnx -o o.onnx" in text for text in page.texts)
    assert {"time", "graphs", "rewrites", "check", "again", "region-1"} <= set(page.values("id"))
    assert sorted(os.listdir(folder)) == ["a.onnx", "b.onnx", "broken.onnx", "o.onnx", "p.html"]


def test_a_dry_run_has_a_page_and_no_model(folder: Path) -> None:
    assert run("optimize", "a.onnx", "--dry-run", "--html", "p.html", "--quiet", *QUICK) == 0
    page = Page((folder / "p.html").read_text())
    assert any("superopt optimize a.onnx -o OUT.onnx" in text for text in page.texts)
    assert "region-1" in page.values("id")


def test_nothing_to_improve_has_a_page_too(folder: Path) -> None:
    assert run("optimize", "b.onnx", "-o", "o.onnx", "--html", "p.html", "--quiet", *QUICK) == 0
    assert "No rewrite was made." in Page((folder / "p.html").read_text()).text


def test_a_page_that_fails_costs_no_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: object) -> None:
        raise LimitHit("the job ran for more than 1 s, while drawing")

    monkeypatch.setattr(pages, "run_job", fail)
    assert run("optimize", "a.onnx", "-o", "o.onnx", "--html", "p.html", "--json", "--quiet", *QUICK) == 0
    report = Report.model_validate_json(capsys.readouterr().out)
    assert any("the graphs could not be drawn: the job ran for more than 1 s" in note for note in report.notes)
    assert (folder / "o.onnx").exists()
    assert "the graphs could not be drawn" in Page((folder / "p.html").read_text()).text
