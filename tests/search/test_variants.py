"""A wrong pass is found by halving the journal, a wrong rewrite by halving the trace; both are left out and named."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from superopt.ir.graph import Graph
from superopt.ir.onnx import Model
from superopt.normalize import Normalized
from superopt.report import CheckReport, Rewrite, TimingReport
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Step
from superopt.search import variants
from superopt.search.hunted import Gain, Hunted
from superopt.search.trace import Traced
from superopt.search.variants import ALL, ATTEMPTS, BEST, SURE, TIDIED, Repairer, Variant
from superopt.search.verdict import verdict

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
        for_cuda: bool = False,
    ) -> Normalized:
        assert for_cuda  # as the vocabulary has it
        made = [n for n in self.names if (f"rule-{n}", f"node-{n}") not in forbid][:limit]
        rewrites = tuple(Rewrite(name=f"rule-{n}", place=f"node-{n}", proof="none") for n in made)
        return Normalized(Graph((), (), (), (), (), name="".join(made)), rewrites)

    def check(self, graph: Graph) -> CheckReport:
        self.checks += 1
        differs = bool(set(graph.name) & set(self.wrong))
        status = "different" if differs else "equal"
        return CheckReport(status=status, reason="y is off" if differs else "", runs=1, inputs=[], outputs=[])


class Shop:
    """Stand in for `Workshop`: a step in a region is a letter of the graph's name; leaving one out changes no other."""

    def __init__(self, tidied: Graph) -> None:
        self.tidied = tidied
        self.book, self.vocabulary = None, Vocabulary(for_cuda=True)

    def build(self, trace: Sequence[Traced]) -> tuple[Graph, list[Traced], list[str]]:
        name = self.tidied.name + "".join(step.results[0] for record in trace for step in record.steps)
        return Graph((), (), (), (), (), name=name), list(trace), []


def repaired(monkeypatch: pytest.MonkeyPatch, passes: Passes, regions: Sequence[str] = "") -> Variant:
    monkeypatch.setattr(variants, "normalize", passes.normalize)
    monkeypatch.setattr(variants, "Workshop", lambda model, tidied, book, vocabulary: Shop(tidied))
    tidied = passes.normalize(MODEL, for_cuda=True)
    kinds = list(dict.fromkeys(regions))
    trace = tuple(
        Traced((letters,), tuple(Step(f"rule-{s}", (s,), {}) for s in letters), kind=kinds.index(letters))
        for letters in regions
    )
    shop = Shop(tidied.graph)
    graph, _, _ = shop.build(trace)
    repairer = Repairer(MODEL, shop, None, passes.check, lambda stage, detail: None)  # pyright: ignore[reportArgumentType]
    return repairer.repaired(Variant("all", graph, tidied.rewrites, trace))


def test_a_right_candidate_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes("abcdef", "")
    found = repaired(monkeypatch, passes, "XYZ")
    assert (found.graph.name, found.notes, passes.checks) == ("abcdefXYZ", (), 1)


@pytest.mark.parametrize("wrong", ["a", "d", "h", "ah", "bcd"])
def test_guilty_passes_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    found = repaired(monkeypatch, Passes("abcdefgh", wrong), "XY")
    assert found.check is not None
    assert found.check.status == "equal"
    assert found.graph.name == "".join(n for n in "abcdefgh" if n not in wrong) + "XY"
    assert found.left_out == tuple((f"rule-{n}", f"node-{n}") for n in sorted(wrong))
    assert sorted(found.notes) == [
        f"rule-{n} at node-{n} changed the outputs and was left out: y is off" for n in sorted(wrong)
    ]


@pytest.mark.parametrize("wrong", ["U", "Z", "VX"])
def test_guilty_rewrites_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    found = repaired(monkeypatch, Passes("ab", wrong), "UVWXYZ")
    assert found.check is not None
    assert found.check.status == "equal"
    assert found.graph.name == "ab" + "".join(n for n in "UVWXYZ" if n not in wrong)
    assert len(found.notes) == len(wrong)
    assert all("changed the outputs, left out: y is off" in note for note in found.notes)


@pytest.mark.parametrize(
    ("regions", "wrong", "left", "named"),
    [
        (["UVW", "XYZ"], "V", "UXYZ", ["rule-V, rule-W"]),
        (["UVW", "XYZ"], "X", "UVW", ["rule-X, rule-Y, rule-Z"]),
        (["UVW", "XYZ", "UVW"], "W", "UVXYZUV", ["rule-W"]),
        (["UVW", "XYZ"], "WZ", "UVXY", ["rule-W", "rule-Z"]),
        (["UVW", "XYZ"], "UV", "XYZ", ["rule-U, rule-V, rule-W"]),
    ],
)
def test_of_a_guilty_region_the_steps_before_the_wrong_one_stay(
    monkeypatch: pytest.MonkeyPatch, regions: list[str], wrong: str, left: str, named: list[str]
) -> None:
    found = repaired(monkeypatch, Passes("ab", wrong), regions)
    assert found.check is not None
    assert (found.graph.name, found.check.status) == (f"ab{left}", "equal")
    assert [note.split(" in region")[0] for note in found.notes] == named


def test_passes_and_rewrites_may_both_be_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    found = repaired(monkeypatch, Passes("abc", "bY"), "XYZ")
    assert (found.graph.name, found.check and found.check.status) == ("acXZ", "equal")


def test_halving_asks_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    names = "".join(map(chr, range(0x4E00, 0x4E00 + 500)))
    passes = Passes(names, names[321])
    repaired(monkeypatch, passes)
    assert passes.checks <= 2 + 9


def test_when_the_only_pass_is_wrong_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = repaired(monkeypatch, Passes("a", "a"))
    assert not found.is_changed
    assert found.is_repaired
    assert not repaired(monkeypatch, Passes("a", "")).is_repaired
    said = verdict(found, TimingReport.untimed("not worth it"), False)
    assert said.startswith("0 %: all that was rewritten changed the outputs and was left out")


def test_repair_gives_up_and_says_different(monkeypatch: pytest.MonkeyPatch) -> None:
    found = repaired(monkeypatch, Passes("abcdefghij", "abcdefghij"))
    assert found.check is not None
    assert found.check.status == "different"
    assert len(found.notes) == ATTEMPTS


@pytest.mark.parametrize(
    ("sure", "unsure", "meant"),
    [
        ("", "", {TIDIED: ""}),
        ("", "X", {TIDIED: "", ALL: "X"}),
        ("A", "", {TIDIED: "", ALL: "A"}),
        ("A", "X", {TIDIED: "", ALL: "AX", SURE: "A"}),
        ("AB", "", {TIDIED: "", ALL: "AB", BEST: "A"}),
        ("ABC", "XY", {TIDIED: "", ALL: "ABCXY", SURE: "ABC", BEST: "AB"}),
    ],
)
def test_variants_have_all_the_sure_or_the_best_rewrites(sure: str, unsure: str, meant: dict[str, str]) -> None:
    letters = sure + unsure
    trace = [Traced((letter,), (Step(f"rule-{letter}", (letter,), {}),), kind=k) for k, letter in enumerate(letters)]
    gains = [
        Gain(k, 1, (1.0, 0.5), (1.0, 0.5 + 0.01 * k), (f"rule-{letter}",), letter in sure)
        for k, letter in enumerate(letters)
    ]
    shop = Shop(Graph((), (), (), (), (), name=""))
    found = variants.variants(shop, (), Hunted(trace=trace, gains=gains))  # pyright: ignore[reportArgumentType]
    assert {variant.name: variant.graph.name for variant in found} == meant
