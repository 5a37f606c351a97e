# pyright: basic
"""Mutants in a report: an audit proves them again from their text, and believes nothing else that is said of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from superopt.report import OwnRule, Report
from superopt.rewrite.ruleset import digest
from superopt.rewrite.text import format_rule, parse_rules
from tests.search.heads import REGISTRY, small_book
from tests.search.mutant_reports import DERIVED, MENDED, SHIPPED, TRUE, Edit, renamed, replaced, text, with_mutant
from tests.search.rewritten import Rewritten, audited, problem

pytestmark = [pytest.mark.ort, pytest.mark.smt]


@pytest.fixture
def result(made_of_mutants: Rewritten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rewritten:
    """A copy to tamper with, and a rule book to which each audit adds for itself."""
    monkeypatch.setattr("superopt.search.audit.open_rulebook", lambda *_: small_book(SHIPPED))
    return made_of_mutants.copied(tmp_path)


def test_an_honest_result_is_confirmed_and_its_mutants_proved_again(result: Rewritten) -> None:
    found = audited(result)
    assert found.confirmed, found.problems
    assert "2 mutants with their corrections were proved again" in found.notes
    derived, mended, shipped = found.rules
    assert "+lemmas " in derived.proof
    assert "+lemmas " not in mended.proof
    assert shipped.name == SHIPPED.name
    assert [r.kind for r in result.told().rewrites] == ["partial", "partial", "rule"]
    assert [m.name for m in result.told().mutants] == [derived.name, mended.name]


@pytest.mark.parametrize(
    ("number", "edit", "reason"),
    [
        (DERIVED, replaced("pads=[1, 1, 1, 1]", "pads=[0, 1, 2, 1]"), ": its proof is of another text: digest "),
        (MENDED, replaced("starts=[", "starts=[1 + "), ": its proof is of another text: digest "),
        (MENDED, text(lambda told: told.replace("digest=", "digest=0")), ": its proof is of another text: digest 0"),
        (MENDED, lambda told: told.model_copy(update={"digest": "0" * 12}), ": the report tells of digest 00000000"),
        (MENDED, text(lambda _: "Conv(x, k)"), ": its text:1:1: expected `rule NAME`"),
        (MENDED, text(lambda _: ""), ": its text has 0 rules, expected one"),
        (MENDED, text(lambda told: f"{told}\n{format_rule(SHIPPED)}"), ": its text has 2 rules, expected one"),
        (MENDED, text(lambda _: format_rule(SHIPPED)), ": its text is that of the rule linear-matmul-matmul-to"),
        (MENDED, replaced("origin  partial tiles", "origin  hand"), ": is no mutant, its origin is 'hand'"),
        (MENDED, replaced("origin  partial tiles", "origin  partial magic"), "its origin is 'partial magic', "),
        (MENDED, replaced("origin  partial tiles", "origin  partial canvas"), ": is called after something else, "),
        (MENDED, replaced("proof   unbounded", "proof   bounded 3"), ": its text tells of no proof"),
        (MENDED, text(lambda told: "".join(line for line in told.splitlines(True) if "proof " not in line)),
         ": its text tells of no proof"),
        (MENDED, replaced("\n  given ", "\n  where finite\n  given "), ": has conditions, as no mutant has"),
        (MENDED, replaced("Conv(", "Convolution("), ": no operator Convolution is defined in specs/"),
    ],
)  # fmt: skip
def test_a_mutant_that_is_told_otherwise(result: Rewritten, number: int, edit: Edit, reason: str) -> None:
    name = result.told().mutants[number].name
    result.tell(with_mutant(result.told(), number, edit))
    found = problem(result)
    assert found.startswith(f"mutant {name}")
    assert reason in found


def test_a_mutant_under_the_name_of_a_rule_that_ships(result: Rewritten) -> None:
    """Told so everywhere: in its text, in the trace and among the rewrites."""
    report = result.told()
    name = report.mutants[MENDED].name
    result.tell(Report.model_validate_json(report.model_dump_json().replace(name, SHIPPED.name)))
    assert problem(result) == f"mutant {SHIPPED.name}: there is a rule of this name already"


def test_a_rule_that_ships_told_as_a_mutant(result: Rewritten) -> None:
    told = OwnRule(name=SHIPPED.name, digest=digest(SHIPPED, REGISTRY), text=format_rule(SHIPPED))
    report = result.told()
    result.tell(report.model_copy(update={"mutants": [*report.mutants, told]}))
    assert problem(result) == f"mutant {SHIPPED.name}: there is a rule of this name already"


def test_a_mutant_told_twice(result: Rewritten) -> None:
    report = result.told()
    mended = report.mutants[MENDED]
    result.tell(report.model_copy(update={"mutants": [mended, mended]}))
    assert problem(result) == f"mutant {mended.name}: there is a rule of this name already"


def test_a_mutant_that_nothing_was_done_with(result: Rewritten) -> None:
    extra = renamed(parse_rules(TRUE)[0])
    report = result.told()
    result.tell(report.model_copy(update={"mutants": [*report.mutants, extra]}))
    assert problem(result) == f"mutant {extra.name}: the trace does not use it"


def test_a_mutant_that_is_left_out(result: Rewritten) -> None:
    report = result.told()
    result.tell(report.model_copy(update={"mutants": report.mutants[:MENDED]}))
    assert problem(result) == f"there is no proved rule {report.mutants[MENDED].name}"


def test_a_mutant_told_as_a_rule(result: Rewritten) -> None:
    report = result.told()
    rewrites = [r.model_copy(update={"kind": "rule"}) for r in report.rewrites]
    result.tell(report.model_copy(update={"rewrites": rewrites}))
    assert "another kind: expected 'partial', found 'rule'" in problem(result)


def test_another_share_mended_in_the_list_of_rewrites(result: Rewritten) -> None:
    report = result.told()
    rewrites = [r.model_copy(update={"detail": r.detail.replace("%", " per mille")}) for r in report.rewrites]
    result.tell(report.model_copy(update={"rewrites": rewrites}))
    assert "another detail: " in problem(result)


def test_without_a_prover_nothing_is_confirmed(result: Rewritten, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "superopt.search.mutant_proofs", None)
    assert problem(result).startswith("mutants cannot be proved again here: ")
