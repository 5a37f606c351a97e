"""A wrong rewrite is found by halving the trace, left out and named."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from superopt.ir.graph import Graph
from superopt.ir.onnx import Model
from superopt.normalize import Normalized
from superopt.report import CheckReport, Rewrite
from superopt.search import repair
from superopt.search.repair import ATTEMPTS, first_right_candidate

pytestmark = pytest.mark.unit

MODEL: Model = None  # pyright: ignore[reportAssignmentType]  # the passes below look at no model


class Passes:
    """Stand in for `normalize`: a list of rewrites, some of them wrong. The graph's name lists what was made."""

    def __init__(self, names: str, wrong: str) -> None:
        self.names, self.wrong, self.checks = names, wrong, 0

    def normalize(
        self,
        model: Model,
        *,
        growth_cap: int | None = None,
        forbid: Collection[tuple[str, str]] = (),
        limit: int | None = None,
    ) -> Normalized:
        made = [n for n in self.names if (f"rule-{n}", f"node-{n}") not in forbid][:limit]
        rewrites = tuple(Rewrite(name=f"rule-{n}", place=f"node-{n}", proof="none") for n in made)
        return Normalized(Graph((), (), (), (), (), name="".join(made)), rewrites)

    def check(self, graph: Graph) -> CheckReport:
        self.checks += 1
        differs = bool(set(graph.name) & set(self.wrong))
        status = "different" if differs else "equal"
        return CheckReport(status=status, reason="y is off" if differs else "", runs=1, inputs=[], outputs=[])


def repaired(monkeypatch: pytest.MonkeyPatch, passes: Passes) -> repair.Candidate | None:
    monkeypatch.setattr(repair, "normalize", passes.normalize)
    return first_right_candidate(MODEL, None, passes.check, lambda stage, detail: None)


def test_nothing_to_rewrite_is_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    assert repaired(monkeypatch, Passes("", "")) is None


def test_a_right_candidate_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes("abcdef", "")
    found = repaired(monkeypatch, passes)
    assert found is not None
    assert (found.graph.name, found.notes, passes.checks) == ("abcdef", (), 1)


@pytest.mark.parametrize("wrong", ["a", "d", "h", "ah", "bcd"])
def test_the_guilty_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    found = repaired(monkeypatch, Passes("abcdefgh", wrong))
    assert found is not None
    assert found.check.status == "equal"
    assert found.graph.name == "".join(n for n in "abcdefgh" if n not in wrong)
    assert sorted(found.notes) == [
        f"rule-{n} at node-{n} changed the outputs and was left out: y is off" for n in sorted(wrong)
    ]


def test_halving_asks_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "".join(map(chr, range(0x4E00, 0x4E00 + 500)))
    passes = Passes(names, names[321])
    repaired(monkeypatch, passes)
    assert passes.checks <= 2 + 9


def test_when_the_only_rewrite_is_wrong_the_original_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    assert repaired(monkeypatch, Passes("a", "a")) is None


def test_repair_gives_up_and_says_different(monkeypatch: pytest.MonkeyPatch) -> None:
    found = repaired(monkeypatch, Passes("abcdefghij", "abcdefghij"))
    assert found is not None
    assert found.check.status == "different"
    assert len(found.notes) == ATTEMPTS
