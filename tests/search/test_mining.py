# pyright: basic
"""`optimize --mine`: a spelling that no shipped rule knows is recognized, proved, used and audited."""

from __future__ import annotations

from pathlib import Path

import pytest

from superopt.cli import main
from superopt.errors import BadOption
from superopt.options import Options
from superopt.report import Report
from superopt.rewrite.ruleset import load_rules, state
from superopt.search.audit import audit
from tests.mine.blocks import REGISTRY, model_bytes

pytestmark = [pytest.mark.ort, pytest.mark.smt]

SPELLED = """
g (float[4,64,512] x) => (float[4,64,512] y)
<float h = {0.5}, float one = {1}, float r = {1.41421356}>
{
  a = Div(x, r)
  b = Erf(a)
  c = Sub(one, b)
  d = Mul(x, c)
  e = Mul(d, h)
  y = Sub(x, e)
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mining")
    (folder / "in.onnx").write_bytes(model_bytes(SPELLED))
    done = main(
        ["optimize", str(folder / "in.onnx"), "-o", str(folder / "out.onnx"), "--report", str(folder / "report.json"),
         "--mine", "60", "--keep-rules", str(folder / "kept.rules"), "--budget", "2", "--accept", "not-slower",
         "--options", "fixed", "--no-partial", "--quiet"]
    )  # fmt: skip
    assert done == 0
    return folder


def told(folder: Path) -> Report:
    return Report.model_validate_json((folder / "report.json").read_text())


def confirmed(folder: Path, report: Report) -> str:
    """Empty, or what an audit does not believe."""
    path = folder / "told.json"
    path.write_text(report.model_dump_json())
    found = audit(folder / "in.onnx", folder / "out.onnx", path, (), (), lambda *_: None)
    return "" if found.confirmed else " ".join(found.problems)


def test_the_spelling_became_a_kept_and_proved_rule(folder: Path) -> None:
    kept = load_rules([folder / "kept.rules"])
    assert kept
    assert all(state(rule, REGISTRY) == "proved" for rule in kept)
    assert any(call.op == "Gelu" for rule in kept for call in rule.calls)
    assert any(f"kept in {folder / 'kept.rules'}" in note for note in told(folder).notes)


def test_what_was_used_is_told_in_full_and_an_audit_proves_it_again(folder: Path) -> None:
    report = told(folder)
    if report.returned == "original":
        pytest.skip(f"the clock said no: {report.verdict}")
    assert [rule.name for rule in report.mined] == [step.rule for region in report.trace for step in region.steps]
    assert confirmed(folder, report) == ""


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("0.5", "0.25", "tells of no proof of it as it stands"),
        ("origin  mined", "origin  hand", "was not mined"),
        ("digest=", "digest=0", "tells of no proof of it as it stands"),
    ],
)
def test_an_altered_rule_is_not_believed(folder: Path, before: str, after: str, reason: str) -> None:
    report = told(folder)
    if report.returned == "original":
        pytest.skip(f"the clock said no: {report.verdict}")
    forged = [rule.model_copy(update={"text": rule.text.replace(before, after)}) for rule in report.mined]
    assert reason in confirmed(folder, report.model_copy(update={"mined": forged}))


def test_there_is_nothing_to_keep_without_mining(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="nothing is mined without --mine"):
        Options(keep_rules=tmp_path / "kept.rules")
    with pytest.raises(BadOption, match="--mine: expected seconds"):
        Options(mine=-1.0)
