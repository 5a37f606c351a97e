# pyright: basic
"""One model from end to end: what is known is not found out again, and one failure does not spoil the rest."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from benchmarks import built, examination, optimizer, stages, subjects
from benchmarks.examination import Choices, Examination
from benchmarks.records import (
    BY_HAND,
    ORIGINAL,
    OURS,
    AuditOutcome,
    Contender,
    OptimizeOutcome,
    PeerOutcome,
    Ratio,
)
from benchmarks.subjects import Subject


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    built.write(tmp_path, ["matmul-chain"])
    return Subject("chain", tmp_path / "matmul-chain.onnx", group="built", hand=tmp_path / f"matmul-chain{built.HAND}")


@pytest.fixture
def choices(tmp_path: Path) -> Choices:
    return Choices("cpu", budget=1.0, timing=1.0, cache=tmp_path / "cache")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stages that take no time, and who was asked for them."""
    asked: list[str] = []

    def optimize(subject, place) -> OptimizeOutcome:
        asked.append(subject.name)
        return OptimizeOutcome(verdict="done", nodes=3)

    monkeypatch.setattr(examination, "has_command", lambda name: False)
    monkeypatch.setattr(stages, "optimize", optimize)
    monkeypatch.setattr(stages, "audit", lambda subject, place, known: AuditOutcome(status="no audit command"))
    monkeypatch.setattr(stages, "time_all", lambda subject, place, others: stages.Timing((), None, "not timed"))
    return asked


@pytest.mark.unit
def test_what_is_known_is_not_found_out_again(subject: Subject, choices: Choices, calls: list[str]) -> None:
    first = Examination(choices, None).result(subject)
    assert (first.nodes, first.optimize.nodes, first.timing_problem) == (27, 3, "not timed")
    assert Examination(choices, None).result(subject) == first
    assert calls == ["chain"]


@pytest.mark.unit
@pytest.mark.parametrize("change", [{"again": True}, {"budget": 2.0}, {"extra": ("--seed", "1")}])
def test_it_is_found_out_again_when_asked_to_or_when_options_change(
    subject: Subject, choices: Choices, calls: list[str], change: dict
) -> None:
    Examination(choices, None).result(subject)
    Examination(Choices(**{**vars(choices), **change}), None).result(subject)
    assert calls == ["chain", "chain"]


@pytest.mark.unit
def test_other_code_makes_it_stale_and_stale_may_do(
    subject: Subject, choices: Choices, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Examination(choices, None).result(subject)
    monkeypatch.setattr(examination, "code_digest", lambda: "other code")
    assert Examination(Choices(**{**vars(choices), "stale": True}), None).result(subject) == first
    assert Examination(choices, None).result(subject).code == "other code"


@pytest.mark.unit
def test_a_record_of_another_kind_is_not_believed(
    subject: Subject, choices: Choices, calls: list[str], tmp_path: Path
) -> None:
    record = tmp_path / "cache" / "cpu" / "chain" / "result.json"
    record.parent.mkdir(parents=True)
    record.write_text('{"name": "chain"}')
    assert Examination(choices, None).result(subject).optimize.verdict == "done"


@pytest.mark.unit
def test_a_stage_that_fails_is_a_problem_of_that_model_alone(
    subject: Subject, choices: Choices, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(subject, place, others) -> stages.Timing:
        raise OSError("the disk is full")

    monkeypatch.setattr(stages, "time_all", fail)
    assert Examination(choices, None).result(subject).optimize.problem == "OSError: the disk is full"


@pytest.mark.unit
def test_a_peer_with_a_graph_that_was_timed_is_as_fast() -> None:
    timed = [
        Contender(name=name, median=1.0, ratio=Ratio(value=value))
        for name, value in ((ORIGINAL, 1.5), ("onnxsim", 1.2))
    ]
    outcomes = [
        PeerOutcome(peer="onnxsim", version="1", status="ok", graph="g"),
        PeerOutcome(peer="onnxslim", version="1", status="ok", graph="g"),
        PeerOutcome(peer="onnxscript", version="1", status="unchanged", graph="o"),
        PeerOutcome(peer="onnxoptimizer", version="1", status="crashed"),
    ]
    found = {c.name: (c.ratio.value if c.ratio else None, c.detail) for c in examination.implied(timed, outcomes)}
    assert found == {"onnxslim": (1.2, "as onnxsim"), "onnxscript": (1.5, "as original")}


@pytest.mark.unit
def test_the_state_of_the_code_has_a_name(tmp_path: Path) -> None:
    for folder in ("superopt", "specs", "rules"):
        (tmp_path / folder).mkdir()
    empty = examination.code_digest(tmp_path)
    (tmp_path / "rules" / "a.rules").write_text("rule a")
    one = examination.code_digest(tmp_path)
    (tmp_path / "rules" / "a.rules").write_text("rule b")
    assert len({empty, one, examination.code_digest(tmp_path)}) == 3


@pytest.mark.unit
def test_words_after_two_dashes_are_for_optimize(tmp_path: Path) -> None:
    options, extra = optimizer.parse(["--only", "x", "--", "--options", "fixed"])
    assert (options.only, extra) == ("x", ("--options", "fixed"))
    assert optimizer.parse(["--only", "x"])[1] == ()
    place = stages.Workplace(tmp_path, "cpu", 1.0, 1.0, extra)
    words = stages.optimize_command(Subject("s", tmp_path / "s.onnx", {"x": [1, 2]}), place)
    assert words[-4:] == ["--shape", "x=1,2", "--options", "fixed"]


@pytest.mark.unit
def test_exported_networks_are_taken_from_the_first_folder_that_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue = tmp_path / "exported.toml"
    catalogue.write_text('[[model]]\nname = "a.dynamo"\nshapes = { x = [1, 2] }\n[[model]]\nname = "b"\n')
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        (folder / "a.dynamo.onnx").touch()
    (found,) = subjects.exported(folders, catalogue)
    assert found == Subject("a.dynamo", folders[0] / "a.dynamo.onnx", {"x": [1, 2]}, {}, "exported")
    assert capsys.readouterr().err == "b: not in a folder named with --models, left out\n"


@pytest.mark.unit
def test_the_catalogue_can_be_read_and_names_nothing_twice() -> None:
    names = [entry["name"] for entry in tomllib.loads(subjects.EXPORTED.read_text())["model"]]
    assert len(set(names)) == len(names) >= 20


@pytest.mark.ort
@pytest.mark.slow
def test_everything_is_timed_against_what_superopt_returned(
    subject: Subject, choices: Choices, monkeypatch: pytest.MonkeyPatch
) -> None:
    def merge(subject, place) -> OptimizeOutcome:
        place.folder.mkdir(parents=True)
        place.model.write_bytes(subject.hand.read_bytes())
        return OptimizeOutcome(returned="optimized")

    monkeypatch.setattr(examination, "has_command", lambda name: False)
    monkeypatch.setattr(stages, "optimize", merge)
    result = Examination(choices, None).result(subject)
    assert result.timing_problem == ""
    assert [c.name for c in result.contenders] == [OURS, ORIGINAL, BY_HAND]
    assert all(c.median and c.ratio for c in result.contenders)
    assert result.audit.status == "no audit command"
    assert result.environment is not None


@pytest.mark.ort
@pytest.mark.thorough
def test_optimize_and_audit_run_as_commands(subject: Subject, tmp_path: Path) -> None:
    place = stages.Workplace(tmp_path / "place", "cpu", budget=0.5, timing=0.5)
    outcome = stages.optimize(subject, place)
    assert outcome.problem == ""
    assert outcome.returned == ("optimized" if place.model.exists() else "original")
    assert outcome.peak_memory_bytes > 0
    broken = Subject("broken", tmp_path / "broken.onnx")
    broken.path.write_bytes(b"no model")
    assert "exit code 2" in stages.optimize(broken, place).problem
    assert stages.audit(broken, place, known=True).status == "nothing to audit"
    place.model.write_bytes(b"no model")
    assert stages.audit(broken, place, known=False).status == "no audit command"
    assert stages.audit(broken, place, known=True).status == "failed"
