# pyright: basic
"""`superopt rules mutate`, and what the other commands do with the rules it writes."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from superopt.partial.corrected import mutants
from superopt.partial.families import BY_NAME
from superopt.rewrite.remembered import read_rules
from tests.cli.test_main import run
from tests.partial.programs import DRAWN, REGISTRY
from tests.search.heads import LEVELS, head

pytestmark = [pytest.mark.ort, pytest.mark.smt]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("head.onnx").write_bytes(head(LEVELS[:2], layers=2).SerializeToString())
    return Path("head.onnx")


@dataclass(frozen=True)
class Mutated:
    """What one run wrote and said."""

    text: str
    files: list[str]
    out: str
    err: str


@pytest.fixture(scope="module")
def mutated(tmp_path_factory: pytest.TempPathFactory) -> Mutated:
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.chdir(tmp_path_factory.mktemp("mutated"))
        Path("head.onnx").write_bytes(head(LEVELS[:2], layers=2).SerializeToString())
        assert run("rules", "mutate", "head.onnx", "--family", "canvas", "-o", "m.rules") == 0
        files = sorted(p.name for p in Path().iterdir())
        return Mutated(Path("m.rules").read_text(), files, out.getvalue(), err.getvalue())


@pytest.fixture
def written(mutated: Mutated, model: Path) -> Path:
    """A copy to alter."""
    Path("m.rules").write_text(mutated.text)
    return Path("m.rules")


def test_mutants_are_listed_and_written(written: Path, mutated: Mutated) -> None:
    out, err = mutated.out, mutated.err
    rules = read_rules(written)
    assert rules
    assert {rule.origin for rule in rules} == {"partial canvas"}
    for rule in rules:
        assert re.search(rf"^{rule.name} +0\.00% mended  2 images on one canvas, with gaps\. ", out, flags=re.MULTILINE)
    assert out.splitlines()[-1] == f"{len(rules)} proved, {err.count('dropped: ')} dropped, 0 bugs"
    assert written.read_text().startswith("# Mutants of the programs of head.onnx, mended and proved: ")
    assert mutated.files == ["head.onnx", "m.rules"]


def test_what_was_derived_is_proved_again_by_what_it_follows_from(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("rules", "check", written) == 0
    before = written.read_text()
    assert before.count("+lemmas digest=") == len(read_rules(written))
    capsys.readouterr()
    assert run("rules", "verify", "--all", "--workers", "1", "--seconds", "20", written) == 0
    out = capsys.readouterr().out
    assert out.count(" proved ") >= len(read_rules(written))
    assert "one after the other" in out
    assert "unknown" not in out.replace("0 unknown", "")
    assert written.read_text() == before


def test_what_was_derived_and_then_edited_is_not_proved(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, *rights = written.read_text().split("=>")
    written.write_text("=>".join([head, *(r.replace("pads=[1, 1, 1, 1]", "pads=[0, 1, 2, 1]", 1) for r in rights)]))
    assert run("rules", "check", written) == 1
    assert run("rules", "verify", "--workers", "1", "--seconds", "1", "--dry-run", written) == 1
    assert "0 proved, 0 refuted, " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("none.onnx",), "none.onnx: no such file"),
        (("head.onnx", "--family", "canvass"), "--family canvass: there is no such family; they are canvas, tiles, "),
        (("head.onnx", "-o", "no/m.rules"), "no/m.rules: the folder no does not exist"),
        (("head.onnx", "-o", "."), ".: is a folder, expected a file name for the rules"),
        (("head.onnx", "-o", "./head.onnx"), "-o head.onnx: would replace the model"),
        (("head.onnx", "--specs", "no"), "is no folder of operator definitions"),
        ((), "the following arguments are required: MODEL.onnx"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(
    model: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], complaint: str
) -> None:
    before = model.read_bytes()
    assert run("rules", "mutate", *arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err.splitlines()[0]
    assert model.read_bytes() == before
    assert sorted(p.name for p in Path().iterdir()) == ["head.onnx"]


def test_a_file_that_is_no_model_is_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.write_text("rule r")
    assert run("rules", "mutate", model) == 2
    assert capsys.readouterr().err.startswith("superopt: head.onnx: ")


def test_a_model_with_nothing_to_mutate_gives_no_rules(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("rules", "mutate", model, "--family", "transposed", "-o", "m.rules") == 0
    assert capsys.readouterr().out == "0 proved, 0 dropped, 0 bugs\n"
    assert read_rules(Path("m.rules")) == []


@pytest.mark.parametrize("name", DRAWN)
def test_a_family_has_the_name_that_its_mutants_tell(name: str) -> None:
    family, draw = DRAWN[name]
    drawn = (draw(np.random.default_rng(seed)) for seed in range(50))
    found = next(mutant for program in drawn for mutant in mutants(program, REGISTRY, (family,)))
    assert BY_NAME[found.family] is family


def test_help_shows_both_ways_of_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("optimize", "--help") == 0
    assert "--partial, --no-partial" in capsys.readouterr().out
