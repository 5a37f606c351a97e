# pyright: basic
"""`optimize --mine`: a spelling that no shipped rule knows is recognized, proved, used and audited."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest

from superopt.cli import main
from superopt.engine.deliver import deliver
from superopt.errors import BadOption, SuperoptError
from superopt.options import Options
from superopt.report import OwnRule, Report
from superopt.rewrite.ruleset import digest, load_rules, proved, state
from superopt.rewrite.text import format_rule, parse_rules
from superopt.search.trace import heard, own_rules_used
from superopt.verify.prove import SOLVER
from tests.mine.blocks import REGISTRY, model_bytes
from tests.search.heads import small_book
from tests.search.rewritten import Rewritten, audited, problem, rewrite

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


@pytest.fixture
def result(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rewritten:
    """What the kept rule makes of the model, whatever a clock would say; an audit that has no rules of its own."""
    mined = next(rule for rule in load_rules([folder / "kept.rules"]) if any(call.domain for call in rule.calls))
    monkeypatch.setattr("superopt.search.audit.open_rulebook", lambda *_: small_book())
    book = small_book(mined)
    made = rewrite(tmp_path, onnx.load(folder / "in.onnx"), [mined.name], book)
    own = own_rules_used(map(heard, made.told().trace), {mined.name: mined}, book.digests)
    made.tell(made.told().model_copy(update={"mined": own}))
    return made


def test_the_spelling_became_a_kept_and_proved_rule(folder: Path) -> None:
    kept = load_rules([folder / "kept.rules"])
    assert kept
    assert all(state(rule, REGISTRY) == "proved" for rule in kept)
    assert any(call.op == "Gelu" for rule in kept for call in rule.calls)
    report = Report.model_validate_json((folder / "report.json").read_text())
    assert any(f"kept in {folder / 'kept.rules'}" in note for note in report.notes)
    assert {step.rule for region in report.trace for step in region.steps} >= {rule.name for rule in report.mined}


def test_an_audit_proves_what_was_used_again(result: Rewritten) -> None:
    found = audited(result)
    assert found.confirmed, found.problems
    assert "1 mined rule was proved again" in found.notes


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("0.5", "0.25", "tells of no proof of it as it stands"),
        ("origin  mined", "origin  hand", "was not mined"),
        ("digest=", "digest=0", "tells of no proof of it as it stands"),
    ],
)
def test_an_altered_rule_is_not_believed(result: Rewritten, before: str, after: str, reason: str) -> None:
    (rule,) = result.told().mined
    forged = rule.model_copy(update={"text": rule.text.replace(before, after)})
    result.tell(result.told().model_copy(update={"mined": [forged]}))
    assert reason in problem(result)


def test_a_wrong_rule_with_a_proof_of_its_own_is_not_proved_again(result: Rewritten) -> None:
    (rule,) = result.told().mined
    (wrong,) = parse_rules(rule.text.replace("0.5", "0.25"))
    wrong = proved(wrong, REGISTRY, "unbounded", SOLVER)
    forged = OwnRule(name=wrong.name, digest=digest(wrong, REGISTRY), text=format_rule(wrong))
    result.tell(result.told().model_copy(update={"mined": [forged]}))
    assert "could not be proved again: refuted" in problem(result)


def test_there_is_nothing_to_keep_without_mining(tmp_path: Path) -> None:
    with pytest.raises(BadOption, match="nothing is mined without --mine"):
        Options(keep_rules=tmp_path / "kept.rules")
    with pytest.raises(BadOption, match="--mine: expected seconds"):
        Options(mine=-1.0)


def test_rules_that_could_not_be_kept_are_refused_before_the_work(tmp_path: Path) -> None:
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    source.write_bytes(model_bytes(SPELLED))
    for keep, why in (
        (tmp_path, "is a folder"),
        (tmp_path / "missing" / "kept.rules", "does not exist"),
        (source, "would replace the original"),
        (out, "would replace the result"),
        (Path(os.devnull), "is no regular file"),
    ):
        with pytest.raises(SuperoptError, match=why):
            deliver(source, out, Options(mine=5.0, keep_rules=keep), _never)
    assert sorted(tmp_path.iterdir()) == [source]


def _never(_: object) -> None:
    raise AssertionError("the work has begun")
