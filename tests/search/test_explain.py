# pyright: basic
"""Why a node was not rewritten: what each rule says, what stands in its way, and what a run did to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import parser

from superopt.errors import BadOption
from superopt.options import Options
from superopt.report import Explained, Report, RuleAttempt, SearchReport
from superopt.search.explain import explain
from tests.search.rewritten import Rewritten, book, branches, convolutions

pytestmark = pytest.mark.ort

BARRIERS = """<ir_version: 8, opset_import: ["" : 17, "my" : 1]>
g (float[2, 3] x, bool c) => (float[2, 3] y, float[2, 3] z, float[1] w) <float[1] one = {1}> {
  [custom] a = my.Op(x)
  [known] y = Relu(a)
  [choice] z = If (c) <
    then_branch = t () => (float[2, 3] u) { [inner] u = Relu(x) },
    else_branch = e () => (float[2, 3] v) { v = Neg(x) }
  >
  [kept] w = Neg(one)
}"""


@pytest.fixture(autouse=True)
def _rules_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.search.explain.open_rulebook", lambda files: book())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "m.onnx").write_bytes(convolutions().SerializeToString())
    return tmp_path / "m.onnx"


def explained(path: Path, asked: str, report: Report | None = None) -> Explained:
    (found,) = explain(path, [asked], Options(target="cpu"), report, lambda *_: None).explained
    return found


def attempt(found: Explained, rule: str) -> RuleAttempt:
    return next(a for a in found.attempts if a.rule == rule)


@pytest.mark.parametrize("asked", ["conv2", "c2"])
def test_every_rule_that_could_begin_there_says_how_far_it_came(source: Path, asked: str) -> None:
    found = explained(source, asked)
    assert (found.place, found.operator, found.outputs) == ("conv2", "Conv", ["c2: float32[1, 16, 6, 6]"])
    assert (found.passes, found.barrier, found.steps, found.detail) == ([], "", [], [])
    listed = {a.rule for a in found.attempts}
    patterns = book().rules.patterns
    assert {n for n, p in patterns.items() if p.roots and p.anchor.call.op == "Conv"} <= listed
    failed = attempt(found, "conv-pointwise-to-matmul")
    assert (failed.outcome, failed.reason) == ("no match", "axis 2 of k is 3, expected 1")
    ranks = [("used", "matches", "no match").index(a.outcome) for a in found.attempts]
    assert ranks == sorted(ranks)
    fitted = [a.fitted for a in found.attempts if a.outcome == "no match"]
    assert fitted == sorted(fitted, reverse=True)


def test_a_match_may_begin_at_another_node(source: Path) -> None:
    """The second of two convolutions, the inner product of a chain, a node below a rule's root."""
    for asked, rule, results in (
        ("conv2", "conv-conv-conv-to-concat-conv-split-9960", "c1, c2"),
        ("chain1", "linear-matmul-matmul-to-matmul-matmul-4574", "m2"),
        ("conv1", "conv-factor-input", "y"),
    ):
        found = attempt(explained(source, asked), rule)
        assert found.outcome == "matches"
        assert found.reason.startswith(f"it would compute {results} again; whether it pays, the clock says")


def test_one_rule_in_detail(source: Path) -> None:
    found = explained(source, "joined:conv-factor-filters")
    assert [a.rule for a in found.attempts] == ["conv-factor-filters"]
    assert found.detail[0] == "rule conv-factor-filters"
    assert "  y = Add(Conv(x, k, *a), Conv(z, k, *a))" in found.detail
    assert "does not match, 6 nodes and inputs fitted: k stands for two different values" in found.detail
    matched = explained(source, "chain2:linear-matmul-matmul-to-matmul-matmul-4574").detail[-1]
    assert matched.startswith("matches at m2: x = z, y = w1, z = w2, ")
    elsewhere = explained(source, "chain2:conv-factor-filters").attempts[0]
    assert (elsewhere.outcome, elsewhere.reason) == ("no match", "its pattern has no MatMul")


def test_what_passes_took_away_is_told(source: Path) -> None:
    found = explained(source, "a")
    assert found.passes == ["identity: Identity is its operand x"]
    assert found.barrier == "it is gone after the passes"
    assert found.attempts == []
    assert explained(source, "Mul:b").passes == ["constant-folding: Mul → float32[5]"]


def test_barriers_say_why(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(parser.parse_model(BARRIERS).SerializeToString())
    assert explained(path, "custom").barrier == "my::Op has no formula at opset 17"
    assert explained(path, "choice").barrier == "it holds subgraphs: rules work inside them, not across"
    assert explained(path, "kept").barrier == "it depends on constants alone: rules take it for a weight"
    for asked in ("inner", "choice/then_branch/inner", "choice/then_branch/u"):
        found = explained(path, asked)
        assert (found.place, found.barrier) == ("choice/then_branch/inner", "")
        assert found.attempts


def test_a_name_that_several_nodes_have_stands_for_all(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(branches().SerializeToString())
    found = explain(path, ["twin"], Options(target="cpu"), None, lambda *_: None).explained
    assert [node.outputs for node in found] == [["p: float32[n, 5]"], ["q: float32[n, 5]"]]
    assert explained(path, "q/then_branch/r").outputs == ["r: float32[n, 5]"]


@pytest.mark.parametrize(
    ("asked", "near"),
    [("conv3", "near it: conv"), ("c1:conv-is-nothing", "no node has that name"), ("ẞ", "of that name")],
)
def test_unknown_names_are_refused_with_those_near(source: Path, asked: str, near: str) -> None:
    with pytest.raises(BadOption, match=f"--explain {asked}: .*{near}"):
        explained(source, asked)


def test_what_a_run_did_is_told_from_its_report(result: Rewritten) -> None:
    report = result.told()
    measured = report.rewrites[2].model_copy(update={"measured_us_before": 12.0, "measured_us_after": 9.5})
    report = report.model_copy(update={"rewrites": [*report.rewrites[:2], measured, *report.rewrites[3:]]})
    found = explained(result.original, "conv1", report)
    assert found.steps == ["conv-factor-input computes y again; its region took 12.0 µs, then 9.5 µs"]
    assert attempt(found, "conv-factor-input").outcome == "used"
    other = explained(result.original, "biased", report)
    assert (other.steps, other.barrier) == ([], "")
    kept = explained(result.original, "conv1", report.model_copy(update={"returned": "original"}))
    assert kept.steps[0].endswith("; the original came back all the same")


def test_what_no_search_looks_for_says_so(source: Path) -> None:
    found = attempt(explained(source, "chain2"), "product-along-weights")
    assert found.outcome == "matches"
    assert "it is not searched for" in found.reason


def test_why_a_match_was_not_used(result: Rewritten) -> None:
    report = result.told()

    def why(**changes) -> str:
        return attempt(
            explained(result.original, "conv1", report.model_copy(update=changes)), "conv-merge-summed"
        ).reason

    assert why().endswith("; the rules were not searched in this run")
    search = SearchReport(
        rules=1, regions=1, distinct_regions=1, candidates=30, measured=4, alpha=1.05, seconds=1.0,
        measuring_seconds=1.0, rank_correlation=None, exhausted=True,
    )  # fmt: skip
    assert why(search=search).endswith("prediction decided against it: 30 graphs were looked at, 4 timed")
    spent = search.model_copy(update={"exhausted": False})
    assert "the search did not come there before its budget was spent" in why(search=spent)
    note = "conv-merge-summed would pay, but adds 9 bytes of weights: more than --growth allows"
    assert why(search=search, notes=["another", note]).endswith(f"; {note}")
