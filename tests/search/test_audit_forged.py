# pyright: basic
"""Mutants that a forger tells of, with names and digests that fit: what they are, what they say of themselves, and how
long an audit may take with them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from superopt.partial import corrected
from superopt.partial.families import canvases
from superopt.report import OwnRule, Report
from superopt.rewrite.rule import Rule
from superopt.rewrite.text import parse_rules
from superopt.search.mutant_proofs import MutantProver
from superopt.search.trace import heard, own_rules_used
from tests.search.heads import REGISTRY, small_book
from tests.search.mutant_reports import DERIVED, LOSES_NAN, MENDED, PADDED, SHIPPED, TRUE, forged, proto, renamed
from tests.search.rewritten import Rewritten, problem, rewrite

pytestmark = [pytest.mark.ort, pytest.mark.smt]


@pytest.fixture
def result(made_of_mutants: Rewritten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rewritten:
    """A copy to tamper with, and a rule book to which each audit adds for itself."""
    monkeypatch.setattr("superopt.search.audit.open_rulebook", lambda *_: small_book(SHIPPED))
    return made_of_mutants.copied(tmp_path)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (PADDED.replace("pads=[0, 0, 1, 1, 0, 0, 1, 0]", "pads=[0, 0, 0, 1, 0, 0, 2, 0]"),
         "could not be proved again: unknown, y could not be proved equal"),
        (LOSES_NAN, "could not be proved again: refuted, true for numbers only, a NaN would get lost"),
        (TRUE.replace("k: [o, c, 1, 1]", "k: [o, c, 9, 9]"), "could not be proved again: "),
        (TRUE.replace("strides=[1, 1])", "strides=[2, 2])"), "could not be proved again: unknown, axis 2 of y has "),
    ],
    ids=["a pad", "a NaN", "nothing fits", "a size"],
)  # fmt: skip
def test_a_false_rule_with_a_digest_of_its_own(result: Rewritten, rule: str, reason: str) -> None:
    result.tell(forged(result.told(), parse_rules(rule)[0]))
    assert reason in problem(result)


@pytest.mark.parametrize(
    ("number", "old", "new"),
    [
        (DERIVED, "pads=[1, 1, 1, 1]", "pads=[0, 1, 2, 1]"),
        (MENDED, "starts=[", "starts=[1 + "),
        (MENDED, "ends=[", "ends=[-1 + "),
    ],
)
def test_a_false_text_with_a_digest_of_its_own(
    result: Rewritten, monkeypatch: pytest.MonkeyPatch, number: int, old: str, new: str
) -> None:
    """No lemma leads there, and it cannot be proved at once either."""
    monkeypatch.setattr("superopt.search.mutant_proofs.MutantProver", partial(MutantProver, seconds=3.0))
    told = result.told().mutants[number].text
    (rule,) = parse_rules(new.join(told.rsplit(old, 1)))
    report = forged(result.told(), rule)
    result.tell(report.model_copy(update={"mutants": report.mutants[MENDED:]}))
    assert "could not be proved again: unknown" in problem(result)


def test_a_true_rule_that_does_not_match_is_refused_by_the_replay(result: Rewritten) -> None:
    result.tell(forged(result.told(), parse_rules(PADDED)[0]))
    found = problem(result)
    assert found.startswith("a step cannot be made again: partial-tiles-")
    assert "does not match at y2" in found


@pytest.mark.parametrize(
    ("number", "old", "new"),
    [
        (MENDED, "16.67% of", "1.67% of"),
        (MENDED, "in 1 boxes", "in 2 boxes"),
        (MENDED, "16.67% of the results are mended, in 1 boxes.", "Nothing is mended."),
        (MENDED, "2 tiles", "4 tiles"),
        (DERIVED, "Nothing is mended.", "0.01% of the results are mended, in 1 boxes."),
    ],
)
def test_another_share_mended_wherever_the_report_tells_of_it(
    result: Rewritten, number: int, old: str, new: str
) -> None:
    """In the text of the mutant and among the rewrites: no digest is about it."""
    report = result.told()
    (rule,) = parse_rules(report.mutants[number].text)
    assert old in rule.doc
    said = rule.doc.replace(old, new)
    result.tell(Report.model_validate_json(report.model_dump_json().replace(rule.doc, said)))
    assert problem(result) == f"mutant {rule.name}: says {said!r} of itself, expected {rule.doc!r}"


def test_a_true_rule_that_its_family_does_not_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It matches, it is proved, the model is what it gives; but what it says of itself nobody can tell."""
    (rule,) = parse_rules(renamed(parse_rules(PADDED.replace("4, 4", "12, 5"))[0]).text)
    book = small_book(rule)
    result = rewrite(tmp_path, proto(), [rule.name], book)
    report = result.told()
    told = own_rules_used(map(heard, report.trace), {rule.name: rule}, book.digests)
    result.tell(report.model_copy(update={"mutants": told}))
    monkeypatch.setattr("superopt.search.audit.open_rulebook", lambda *_: small_book())
    assert problem(result) == f"mutant {rule.name}: its family makes no such mutant of any program of the model"


def test_only_the_family_that_a_rule_names_mutates_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(corrected, "mutants", lambda _, __, families: asked.append(families) or ())
    rule = parse_rules(TRUE)[0]
    for origin in ("partial canvas", "partial magic", "hand", ""):
        MutantProver(REGISTRY).verdict(replace(rule, origin=origin))
    assert asked == [(canvases,), (), (), ()]


def large(given: str, step: str) -> Rule:
    return parse_rules(f"rule r\n  given {given}\n  y = {step})\n  =>\n  y = {step}, dilations=[1, 1])\n")[0]


MILLION = 10**6
LARGE = {
    "padding": large("x: [n, c, 4, 4]  k: [o, c, 3, 3]", f"Conv(x, k, pads={[MILLION] * 4}"),
    "a kernel": large(f"x: [n, c, {4 * MILLION}, 4]  k: [o, c, {MILLION}, 3]", "Conv(x, k, strides=[1, 1]"),
    "a stride": large(f"x: [{MILLION}, {MILLION}, {MILLION}, 4]  k: [1, {MILLION}, 1, 1]", "Conv(x, k, strides=[7, 1]"),
    "a transposed kernel": large(f"x: [n, c, 4, 4]  k: [c, o, {MILLION}, {MILLION}]", "ConvTranspose(x, k"),
}


@pytest.mark.parametrize("what", LARGE)
@pytest.mark.parametrize("family", ["enumerated", "shifted", "transposed", "tiles"])
def test_what_is_too_large_to_be_looked_at_is_refused(what: str, family: str) -> None:
    """True rules, of sizes that no machine has the memory for; none of them is run, enumerated or taken apart."""
    verdict = MutantProver(REGISTRY).verdict(replace(LARGE[what], origin=f"partial {family}"))
    assert verdict.status == "unknown"
    assert verdict.reason.startswith("too large to be run with a NaN: ")


@pytest.mark.parametrize("depth", [400, 40_000])
def test_what_is_nested_too_deeply_is_refused(depth: int) -> None:
    nested = "Neg(" * depth + "x" + ")" * depth
    text = f"rule m\n  given x: [n]\n  y = {nested}\n  =>\n  y = {nested}\n"
    found = MutantProver(REGISTRY).confirm(OwnRule(name="m", digest="", text=text))
    assert isinstance(found, str)
    assert found.startswith("mutant m: ")
