# pyright: basic
"""Mutants in a report: an audit proves them again from their text, and believes nothing else that is said of them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from superopt.ir.onnx import parse
from superopt.partial.corrected import corrected_mutants
from superopt.partial.families import canvases, tiles
from superopt.partial.lift import originals
from superopt.report import MutantRule, Report
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import digest, load_rules, proved, rule_files
from superopt.rewrite.text import format_rule, parse_rules
from superopt.rewrite.whole import piece_of
from superopt.search.mutant_proofs import MutantProver
from superopt.search.trace import heard, mutants_used
from tests.search.heads import CHANNELS, LEVELS, REGISTRY, model, small_book
from tests.search.rewritten import Rewritten, audited, problem, rewrite

pytestmark = [pytest.mark.ort, pytest.mark.smt]

SHIPPED = next(rule for rule in load_rules(rule_files()) if rule.name == "matmul-associate-right")


def proto() -> onnx.ModelProto:
    """A head of two layers on two images, an image on its own, and a chain of products."""
    rng = np.random.default_rng(0)
    shapes = {"k0": (CHANNELS, CHANNELS, 3, 3), "k1": (CHANNELS, CHANNELS, 3, 3), "k2": (2, 3, 3, 3),
              "v": (6, 7), "w": (7, 5)}  # fmt: skip
    window: dict[str, Any] = {"pads": [1, 1, 1, 1]}
    nodes = []
    for k in range(2):
        nodes.append(helper.make_node("Conv", [f"x{k}", "k0"], [f"c{k}"], **window))
        nodes.append(helper.make_node("Relu", [f"c{k}"], [f"r{k}"]))
        nodes.append(helper.make_node("Conv", [f"r{k}", "k1"], [f"y{k}"], **window))
    nodes.append(helper.make_node("Conv", ["x2", "k2"], ["y2"], **window))
    nodes += [helper.make_node("MatMul", ["z", "v"], ["m"]), helper.make_node("MatMul", ["m", "w"], ["t"])]
    images = {f"{k}": [1, CHANNELS, *LEVELS[k]] for k in range(2)}
    inputs = {**{f"x{k}": s for k, s in images.items()}, "x2": [1, 3, 12, 5], "z": [4, 6]}
    outputs = {**{f"y{k}": s for k, s in images.items()}, "y2": [1, 2, 12, 5], "t": [4, 5]}
    return model(nodes, inputs, {name: rng.standard_normal(s) / 4 for name, s in shapes.items()}, outputs)


@pytest.fixture(scope="session")
def made_of_mutants(tmp_path_factory: pytest.TempPathFactory) -> Rewritten:
    """A result of three steps: a mutant that was derived, one with corrections, and a rule that ships."""
    opened = parse(proto().SerializeToString())
    rewriter = Rewriter(REGISTRY, 17, Vocabulary())
    programs = list(originals(piece_of(opened.graph, rewriter.constants), rewriter))
    head = next(p for p in programs if len(p.steps) == 6)
    alone = next(p for p in programs if len(p.steps) == 1 and "12" in str(p.given))
    derived = next(corrected_mutants(head, REGISTRY, families=(canvases,)))
    mended = next(c for c in corrected_mutants(alone, REGISTRY, families=(tiles,)) if c.share)
    rules = {c.rule.name: c.rule for c in (derived, mended)}
    book = small_book(SHIPPED, *rules.values())
    result = rewrite(tmp_path_factory.mktemp("mutants"), proto(), [*rules, SHIPPED.name], book)
    report = result.told()
    told = mutants_used(map(heard, report.trace), rules, book.digests)
    result.tell(report.model_copy(update={"mutants": told}))
    return result


@pytest.fixture
def result(made_of_mutants: Rewritten, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rewritten:
    """A copy to tamper with, and a rule book to which each audit adds for itself."""
    monkeypatch.setattr("superopt.search.audit.open_rulebook", lambda *_: small_book(SHIPPED))
    paths = (made_of_mutants.original, made_of_mutants.optimized, made_of_mutants.report)
    for path in paths:
        shutil.copyfile(path, tmp_path / path.name)
    return Rewritten(*(tmp_path / path.name for path in paths))


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


Edit = Callable[[MutantRule], MutantRule]


def with_mutant(report: Report, number: int, edit: Edit) -> Report:
    mutants = list(report.mutants)
    mutants[number] = edit(mutants[number])
    return report.model_copy(update={"mutants": mutants})


def text(edit: Callable[[str], str]) -> Edit:
    """Another text, nothing else changed."""

    def changed(told: MutantRule) -> MutantRule:
        edited = edit(told.text)
        assert edited != told.text
        return told.model_copy(update={"text": edited})

    return changed


def replaced(old: str, new: str) -> Edit:
    return text(lambda told: new.join(told.rsplit(old, 1)))


DERIVED, MENDED = 0, 1


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
        (MENDED, text(lambda _: format_rule(SHIPPED)), ": its text is that of the rule matmul-associate-right"),
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
    told = MutantRule(name=SHIPPED.name, digest=digest(SHIPPED, REGISTRY), text=format_rule(SHIPPED))
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


DOC = "Trust me."
TRUE = """rule r
  given   x: [n, c, 4, 4]  k: [o, c, 1, 1]
  y = Conv(x, k)
  =>
  y = Conv(x, k, strides=[1, 1])
"""
PADDED = """rule r
  given   x: [n, c, 4, 4]  k: [o, c, 3, 3]
  y = Conv(x, k, pads=[1, 1, 1, 1])
  =>
  p = Pad(x, pads=[0, 0, 1, 1, 0, 0, 1, 0])
  q = Pad(p, pads=[0, 0, 0, 0, 0, 0, 0, 1])
  y = Conv(q, k, dilations=[1, 1], pads=[0, 0, 0, 0], strides=[1, 1])
"""
LOSES_NAN = """rule r
  given   x: [n, c, 4, 4]  k: [o, c, 1, 1]
  y = Conv(Sub(x, x), k)
  =>
  y = ConstantOfShape(input=[n, o, 4, 4], value=0)
"""


def renamed(rule: Rule) -> MutantRule:
    """As a forger would tell of a rule: with a digest and a name that fit."""
    own = digest(rule, REGISTRY)
    told = replace(rule, name=f"partial-tiles-{own}", origin="partial tiles", doc=DOC)
    told = proved(told, REGISTRY, "unbounded", "z3=4.15")
    return MutantRule(name=told.name, digest=own, text=format_rule(told))


def forged(report: Report, rule: Rule) -> Report:
    """The report with another rule in place of its second mutant, wherever it tells of it."""
    old, new = report.mutants[MENDED], renamed(rule)
    told = report.model_dump_json().replace(old.name, new.name).replace(old.digest, new.digest)
    told = told.replace(parse_rules(old.text)[0].doc, DOC)
    return with_mutant(Report.model_validate_json(told), MENDED, lambda _: new)


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
