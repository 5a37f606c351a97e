"""`superopt generate-rules` from the command line: found, proved, written, and gone on with."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import specs
from superopt.cli import main
from superopt.rewrite.ruleset import load_rules, rule_files, state

TINY = Path(__file__).parent.parent / "generate" / "tiny.toml"


def generated(out: Path, *words: str) -> int:
    return main(
        [
            "generate-rules",
            "--recipe",
            str(TINY),
            "--max-ops",
            "2",
            "--ops",
            "Relu,Transpose",
            "--out",
            str(out),
            *words,
        ]
    )


@pytest.mark.smt
@pytest.mark.slow
def test_rules_are_written_proved_and_the_same_again(tmp_path: Path) -> None:
    assert generated(tmp_path / "one", "--workers", "1", "--quiet") == 0
    rules = load_rules(rule_files([tmp_path / "one"]))
    assert rules
    assert {state(rule, specs.load()) for rule in rules} == {"proved"}
    assert all(rule.doc and rule.origin.startswith("generated recipe=tiny") for rule in rules)

    assert generated(tmp_path / "two", "--workers", "2", "--quiet") == 0
    assert (tmp_path / "two" / "tiny.rules").read_bytes() == (tmp_path / "one" / "tiny.rules").read_bytes()

    size = (tmp_path / "one" / "ledger.jsonl").stat().st_size
    assert generated(tmp_path / "one", "--quiet") == 0
    assert (tmp_path / "one" / "ledger.jsonl").stat().st_size == size  # nothing was asked twice


@pytest.mark.smt
@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    words = ["--recipe", str(TINY), "--max-ops", "2", "--ops", "Relu,Transpose,Add", "--workers", "1", "--quiet"]
    command = [sys.executable, "-m", "superopt", "generate-rules", *words, "--out", str(tmp_path / "killed")]
    ledger = tmp_path / "killed" / "ledger.jsonl"
    kills = 0
    for least in (3, 9):  # answers that are there before it is killed
        with subprocess.Popen(command) as process:
            while process.poll() is None and (not ledger.exists() or ledger.read_bytes().count(b"\n") < least):
                time.sleep(0.02)
            kills += process.poll() is None
            process.kill()
    assert kills
    before = ledger.read_bytes()
    assert subprocess.run(command, check=False).returncode == 0
    assert ledger.read_bytes().startswith(before[: before.rindex(b"\n") + 1])  # no answer was lost

    assert main(["generate-rules", *words, "--out", str(tmp_path / "whole")]) == 0
    for name in ("tiny.rules", "ledger.jsonl"):
        found, meant = (_without_seconds(tmp_path / folder / name) for folder in ("killed", "whole"))
        assert found == meant


def _without_seconds(path: Path) -> list[str]:
    return sorted(re.sub(r'"seconds": ?[0-9.]+', "", line) for line in path.read_text().splitlines())


@pytest.mark.unit
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--recipe", "nothing"], "no recipe is called"),
        (["--recipe", str(TINY), "--scene", "nowhere"], "has no scene nowhere"),
        (["--recipe", str(TINY), "--ops", "Softmax"], "has no scene with any of Softmax"),
    ],
)
def test_what_is_not_there_is_named(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate-rules", *words, "--out", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.unit
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = [", "Invalid"),
        ("given = 5", "`given` must be a text"),
        ('worlds = ["m=1", "m=2", "m=3", "k=4"]', "no world says what 'm' is"),
        ('worlds = ["m=1", "m=2", "m=3", "m=999999999999"]', "expected a number from 0 to"),
        ('worlds = ["m=1", "m=2", "m=3", "m=0"]', "sizes start at 1"),
        ('worlds = ["m=1"]', "at least 4"),
        ('ops = ["Nope($)"]', "no operator Nope"),
        ('ops = ["Relu($"]', "expected"),
    ],
)
def test_a_bad_recipe_is_one_line(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fields = {
        "given": 'given = "x: [m]"',
        "worlds": 'worlds = ["m=1", "m=2", "m=3", "m=4"]',
        "ops": 'ops = ["Relu($)"]',
    }
    fields[text.partition(" ")[0]] = text
    path = tmp_path / "bad.toml"
    path.write_text("\n".join(["[[scene]]", *fields.values(), ""]))
    assert main(["generate-rules", "--recipe", str(path), "--out", str(tmp_path), "--quiet"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) <= 4


@pytest.mark.unit
def test_macros_ask_for_rules_to_compose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate-rules", "--recipe", "macros", "--out", str(tmp_path), "--quiet"]) == 2
    assert "name their files with --known" in capsys.readouterr().err
    assert not (tmp_path / "macros.rules").exists()


@pytest.mark.unit
def test_recipes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate-rules", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{name}: " in listed for name in ("taso", "linear", "conv", "pointwise", "reduce", "layout", "fused"))
