# pyright: basic
"""What mutants may not do without: seconds, a proof, a prover; and what is told of them at the end of a run."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import pytest

from superopt.cost.coefficients import PRIORS
from superopt.cost.predict import Predictor
from superopt.ir.onnx import parse
from superopt.normalize import normalize
from superopt.options import Options
from superopt.partial.corrected import mutants
from superopt.partial.differ import Disagreement
from superopt.partial.families import canvases
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.remembered import read_rules
from superopt.rewrite.text import format_rule
from superopt.search.audit import audit
from superopt.search.ending import Ending
from superopt.search.hunted import Budget, Hunted
from superopt.search.hunting import PARTIAL, Ground
from superopt.search.optimize import Destination, optimize_model
from superopt.search.rulebook import open_rulebook
from superopt.search.trace import own_rules_used
from superopt.search.trial import Trial
from superopt.search.workshop import Workshop
from superopt.verify.prove import Verdict
from tests.search.clocks import Counting
from tests.search.heads import DEVICE, LEVELS, assert_same_outputs, built, head, hunted, small_book
from tests.search.pyramids import pyramid

pytestmark = [pytest.mark.ort, pytest.mark.smt]


def test_without_seconds_for_them_there_are_none() -> None:
    shop, found = hunted(head(), partial=0.0)
    assert not found.trace
    assert not shop.book.digests
    assert found.mutated.programs == found.mutated.mutants == 0


@pytest.mark.parametrize(
    ("options", "share", "partial", "search"),
    [
        ({}, 1.0, PARTIAL * 10, 10.0), ({"partial": False}, 1.0, 0.0, 10.0), ({}, 0.3, 0.0, 3.0),
        ({"search_time": 40}, 1.0, PARTIAL * 10, 40.0), ({"search_time": 40}, 0.3, 0.0, 12.0),
    ],
)  # fmt: skip
def test_the_options_and_the_share_of_the_budget(
    monkeypatch: pytest.MonkeyPatch, options: dict, share: float, partial: float, search: float
) -> None:
    """A second search, of standard operators alone, has the mutants that the first one found."""
    monkeypatch.setattr("superopt.search.hunting.calibrate", lambda *_: PRIORS)
    opened = parse(head().SerializeToString())
    asked: list[Budget] = []

    class Asked(Workshop):
        def hunt(self, timer, predictor, sizes, budget, tell, ending=None):
            asked.append(budget)
            return Hunted(), None

    given = Options.of(target="cpu", threads=1, budget=10.0, **options)
    trial = Trial(opened, given, lambda *_: None)
    with Ground(trial, given, lambda *_: None, Ending()) as ground:
        ground.hunt(Asked(opened, opened.graph, small_book(), Vocabulary()), share)
    assert [(budget.partial, budget.search) for budget in asked] == [(partial, pytest.approx(search))]


@pytest.mark.usefixtures("canvases_only")
def test_nothing_competes_without_a_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def unknowing(rule, *_, **__) -> Verdict:
        asked.append(rule.name)
        return Verdict("unknown", "no idea", 0, 0.0)

    monkeypatch.setattr("superopt.partial.proofs.prove", unknowing)
    for layers in (1, 2):
        shop, found = hunted(head(LEVELS[:2], layers))
        assert asked
        assert found.mutated.timed > 0
        assert not found.mutated.rules
        assert not shop.book.digests
        assert not found.trace
        asked.clear()


def test_an_end_that_is_asked_for_ends_this_too() -> None:
    proto = head()
    opened = parse(proto.SerializeToString())
    shop = Workshop(opened, normalize(opened).graph, small_book(), Vocabulary())
    clock = Counting()
    budget = Budget(60, 60, 100, 1.05, 1 << 20, partial=60.0)
    found, _ = shop.hunt(clock, Predictor(), {}, budget, lambda *_: None, Ending(is_asked=lambda: True))  # pyright: ignore[reportArgumentType]
    assert (found.trace, found.mutated.programs, clock.asked) == ([], 0, 0)


@pytest.mark.usefixtures("canvases_only")
def test_bugs_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where test and proof do not find the same positions, the mutant is thrown away, and that is a note."""

    def disagreeing(*_, **__):
        raise Disagreement("y[0, 0, 2, 1] is wrong by test, not by proof")

    monkeypatch.setattr("superopt.partial.corrected.wrong", disagreeing)
    _, found = hunted(head(LEVELS[:2]))
    assert not found.mutated.rules
    assert "a mutant was thrown away, because its two tests disagree: canvas: y[0, 0, 2, 1] " in found.notes[0]


def test_rules_of_a_file_need_no_prover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proto, _, found = pyramid(2)
    file = tmp_path / "mutants.rules"
    file.write_text("\n".join(format_rule(rule) for rule in found.mutated.rules.values()))

    def forbidden(*_, **__):
        raise AssertionError("nothing is proved here")

    monkeypatch.setattr("superopt.partial.proofs.prove", forbidden)
    shop, again = hunted(proto, *read_rules(file), partial=0.0)
    assert again.trace[0].steps == found.trace[0].steps
    (rewrite,) = shop.rewrites(again.trace, again)
    assert (rewrite.kind, "+lemmas" in rewrite.proof) == ("partial", True)
    assert not own_rules_used(again.trace, again.mutated.rules, shop.book.digests)
    assert_same_outputs(proto, built(shop, again))
    book = open_rulebook([file])
    assert found.mutated.rules.keys() <= book.digests.keys()


WITHOUT_PROVER = """
    import sys
    sys.modules["z3"] = None
    from tests.search.heads import head, hunted
    _, found = hunted(head())
    assert not found.trace and not found.mutated.rules
    print(*found.notes)
"""


def test_without_a_prover_the_search_goes_on_and_says_so() -> None:
    code = textwrap.dedent(WITHOUT_PROVER)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no mutants were made, because they could not be proved: ")
    assert "z3" in done.stdout


@pytest.mark.slow
def test_a_whole_run_tells_of_its_mutants_and_is_confirmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From load to report with the check and the files as they are; only the clock is another."""
    monkeypatch.setattr("superopt.search.mutants.mutants", partial(mutants, families=(canvases,)))
    for share in ("PARTIAL", "MEASURE"):
        monkeypatch.setattr(f"superopt.search.hunting.{share}", 1000.0)
    monkeypatch.setattr("superopt.search.hunting.calibrate", lambda *_: DEVICE)
    monkeypatch.setattr("superopt.search.hunting.RegionTimer", lambda *_, **__: Counting())
    monkeypatch.setattr("superopt.search.optimize._Run._accepts", lambda *_: True)
    for module in ("optimize", "audit"):
        monkeypatch.setattr(f"superopt.search.{module}.open_rulebook", lambda *_: small_book())
    source, out, told = (tmp_path / name for name in ("in.onnx", "out.onnx", "report.json"))
    source.write_bytes(head(LEVELS[:2], 2).SerializeToString())
    where = Destination(tmp_path / "staged", "out.onnx", "out.onnx.data", False)
    options = Options.of(target="cpu", threads=1, budget=0.3)
    outcome = optimize_model(source, where, options, lambda *_: None, lambda *_: None)
    report = outcome.report
    assert report.check.status == "equal"
    (rewrite,) = [r for r in report.rewrites if r.kind == "partial"]
    assert [m.name for m in report.mutants] == [rewrite.name]
    search = report.search
    assert search is not None
    assert search.programs > 1
    assert search.mutants >= search.mutants_timed >= search.mutants_proved > 0
    assert search.mutating_seconds > 0
    out.write_bytes(outcome.written.path.read_bytes())
    told.write_text(report.model_dump_json())
    found = audit(source, out, told, (), (), lambda *_: None)
    assert found.confirmed, found.problems
    assert "1 mutant with its corrections was proved again" in found.notes
