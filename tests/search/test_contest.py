# pyright: basic
"""Which variant of a model is returned: by whole models, and by regions where those cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from superopt.cost.result import Comparison, PairTiming, SubjectTiming
from superopt.errors import CannotRun
from superopt.ir.onnx import parse
from superopt.normalize import normalize
from superopt.options import Options
from superopt.rewrite.emit import Vocabulary
from superopt.runtime.deployment import Deployment
from superopt.search.contest import Contest
from superopt.search.hunted import FUSED, STAYING, Gain, Hunted
from superopt.search.judge import Judge
from superopt.search.leaving_out import brought_in, leaving_out
from superopt.search.trace import Traced
from superopt.search.variants import ALL, Variant, guessed, leaner, variants
from superopt.search.workshop import Workshop
from tests.search.clocks import Counting
from tests.search.test_ablation import GELU, LORA, with_gelu
from tests.search.test_hunt import BOOK, hunted

pytestmark = pytest.mark.ort

GELU_OPERATOR = "com.microsoft::Gelu"


def test_an_operator_is_left_out_and_the_other_rewrites_stay() -> None:
    shop, found, _ = hunted(with_gelu())
    everything = variants(shop, (), found)[1]
    assert everything.name == ALL
    assert brought_in(shop.tidied, everything.graph) == [GELU_OPERATOR]
    [lean] = leaner(shop, everything, [])
    assert list(leaner(shop, everything, [lean])) == [], "it is known"
    assert lean.leaves_out == GELU_OPERATOR
    kinds = [node.kind for node in lean.graph.nodes]
    assert GELU_OPERATOR not in kinds
    assert kinds.count("MatMul") + kinds.count("Gemm") == 1, "the low-rank branch is merged as before"
    assert not {r.kind for r in lean.trace} & {r.kind for r in everything.trace}, "nobody has timed such a region"


def test_regions_that_were_alike_stay_alike() -> None:
    steps = tuple(s for r in hunted(with_gelu())[1].trace for s in r.steps)
    trace = [Traced((f"n{k}",), steps, kind=1 + k % 2) for k in range(4)]
    rules = {name: BOOK.rules.patterns[name].rule for name in (LORA, GELU)}
    found = leaving_out(trace, GELU_OPERATOR, rules)
    assert [r.kind for r in found] == [3, 4, 3, 4]
    assert all(GELU not in [s.rule for s in r.steps] for r in found)


def test_what_no_longer_fits_is_left_out_with_it() -> None:
    shop, found, _ = hunted(with_gelu())
    lost = [Traced(("nowhere",), found.trace[0].steps)]
    assert shop.fitting([*found.trace, *lost]) == found.trace


@dataclass
class Told:
    """A trial that answers with speeds by name over the first model's."""

    speeds: Mapping[str, float]
    asked: list[list[str]] = field(default_factory=list)
    fails: bool = False
    doubt: float = 0.002
    later: Mapping[str, float] = field(default_factory=dict)
    """Speeds from the second look on, where they are others."""
    timed: Deployment = field(default_factory=lambda: Deployment("cpu"))
    options: Options = field(default_factory=Options)

    def compare_all(self, models, seconds, heard=None):
        if self.fails:
            raise CannotRun("no")
        first, *others = models
        speeds = {**self.speeds, **(self.later if self.asked else {})}
        self.asked.append(list(models))
        pairs = []
        for name in others:
            speed = speeds[name] / speeds[first]
            verdict = "faster" if speed > 1 + self.doubt else "slower" if speed < 1 - self.doubt else "not faster"
            pairs.append(
                PairTiming(name=name, verdict=verdict, reason="", speedup=speed, interval=None, sittings=1, pairs=9)
            )
        subjects = tuple(SubjectTiming(name=name, latency=None) for name in models)
        return Comparison(subjects=subjects, pairs=tuple(pairs), seconds=1.0, one_at_a_time=False), False


def contest(told: Told, tmp_path: Path, holder: str = "") -> str:
    """Who wins among all, or against the one that won so far."""
    proto = with_gelu()
    model = parse(proto.SerializeToString())
    graph = normalize(model).graph
    steps = (Traced(("a",), (), kind=1), Traced(("b",), (), kind=2))
    entrants = [
        Variant("all", graph, (), steps),
        Variant("some", graph, (), steps[:1]),
        Variant("lean", graph, (), (Traced(("a",), (), kind=3),), leaves_out=GELU_OPERATOR),
    ]
    gains = [Gain(kind, 1, (2.0, 1.0), (2.0, 1.0), ()) for kind in (1, 2)]
    files = {v.name: tmp_path / f"{v.name}.onnx" for v in entrants}
    for path in files.values():
        path.write_bytes(proto.SerializeToString())
    held = Contest(told, model, Hunted(gains=gains), 10.0)  # pyright: ignore[reportArgumentType]
    won = [v for v in entrants if v.name == holder]
    guesses = [v for v in entrants if v.is_guess]
    return (held.challenged(won[0], guesses, files) if won else held.winner(entrants, files)).name


@pytest.mark.parametrize(
    ("speeds", "winner", "looks"),
    [
        ({"all": 1.30, "some": 1.305, "lean": 1.2}, "all", 1),  # alike: the regions gained more
        ({"all": 1.30, "some": 1.35, "lean": 1.2}, "some", 1),
        ({"all": 1.30, "some": 1.2, "lean": 1.305}, "lean", 2),  # faster beyond doubt, once it is looked at closely
        ({"all": 1.30, "some": 1.2, "lean": 1.301}, "all", 2),
        ({"all": 1.30, "some": 1.2, "lean": 1.28}, "all", 1),
    ],
)
def test_regions_decide_between_variants_that_are_alike(
    speeds: Mapping[str, float], winner: str, looks: int, tmp_path: Path
) -> None:
    told = Told({"original": 1.0, **speeds})
    assert contest(told, tmp_path) == winner
    assert len(told.asked) == looks


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [(1.33, 1.31, "lean"), (1.31, 1.3, "lean"), (1.295, 1.32, "lean"), (1.31, 1.295, "all"), (1.3, 1.305, "all")],
)
def test_where_no_look_is_sure_a_guess_must_be_ahead_in_both_together(
    first: float, second: float, winner: str, tmp_path: Path
) -> None:
    told = Told({"original": 1.0, "all": 1.3, "some": 1.2, "lean": first}, doubt=0.5, later={"lean": second})
    assert contest(told, tmp_path) == winner
    assert len(told.asked) == 2


@pytest.mark.parametrize(
    ("lean", "later", "winner", "looks"),
    [(1.305, 1.305, "lean", 2), (1.28, 1.28, "all", 1), (1.301, 1.301, "all", 2), (1.33, 1.2, "all", 2)],
)
def test_what_leaves_something_out_of_the_winner_must_be_faster(
    lean: float, later: float, winner: str, looks: int, tmp_path: Path
) -> None:
    told = Told({"all": 1.3, "lean": lean}, later={"lean": later})
    assert contest(told, tmp_path, holder="all") == winner
    assert told.asked == [["all", "lean"]] * looks, "the original is not timed again"


def test_a_winner_that_nothing_can_be_timed_against_stays(tmp_path: Path) -> None:
    assert contest(Told({}, fails=True), tmp_path, holder="all") == "all"


def test_what_cannot_be_timed_is_decided_by_its_order(tmp_path: Path) -> None:
    assert contest(Told({}, fails=True), tmp_path) == "all"


def test_without_the_operators_of_onnxruntime_nothing_is_left_out() -> None:
    model = parse(with_gelu().SerializeToString())
    shop = Workshop(model, normalize(model).graph, BOOK, Vocabulary(contrib=False))
    [tidied] = variants(shop, (), Hunted())
    assert list(leaner(shop, tidied, [])) == []


def test_everything_is_fused_where_no_region_was_timed_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Judge, "decided", lambda *_: ())
    monkeypatch.setattr("superopt.search.guessing.LARGE", 0.0)
    shop, found, _ = hunted(with_gelu())
    assert not found.trace
    plain = variants(shop, (), found)
    [everything] = guessed(shop, (), found, plain)
    assert (everything.name, everything.is_guess) == (FUSED, True)
    assert {LORA, GELU} <= {step.rule for record in everything.trace for step in record.steps}
    assert GELU_OPERATOR in [node.kind for node in everything.graph.nodes]
    assert not found.saving(everything.trace), "nobody has timed its regions"


def test_what_was_found_anyway_does_not_compete_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.search.guessing.LARGE", 0.0)
    shop, found, _ = hunted(with_gelu())
    [everything] = guessed(shop, (), found, [])
    assert list(guessed(shop, (), found, [everything])) == []


def test_where_there_are_guesses_alone_the_fastest_is_taken(tmp_path: Path) -> None:
    proto = with_gelu()
    model = parse(proto.SerializeToString())
    graph = normalize(model).graph
    entrants = [Variant(FUSED, graph, (), (Traced(("a",), (), kind=3),)), Variant("x", graph, (), leaves_out="Gelu")]
    files = {v.name: tmp_path / f"{v.name}.onnx" for v in entrants}
    for path in files.values():
        path.write_bytes(proto.SerializeToString())
    told = Told({"original": 1.0, FUSED: 1.1, "x": 1.3})
    assert Contest(told, model, Hunted(), 10.0).winner(entrants, files).name == "x"  # pyright: ignore[reportArgumentType]


def test_a_small_model_needs_no_guess_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, found, _ = hunted(with_gelu())
    assert list(guessed(shop, (), found, [])) == []
    monkeypatch.setattr(Counting, "deployment", Deployment("cuda"))
    shop, found, _ = hunted(with_gelu())
    assert len(list(guessed(shop, (), found, []))) == 1


def three_products() -> onnx.ModelProto:
    """Of one input, with a GELU spelled out behind the last."""
    numbers = {"root": 2**0.5, "one": 1.0, "half": 0.5}
    lines = ("MatMul x w0 y0", "MatMul x w1 y1", "MatMul x w2 p")
    nodes: list[onnx.NodeProto] = []
    for line in (*lines, "Div p root d", "Erf d e", "Add e one f", "Mul p f h", "Mul h half y2"):
        op, *inputs, output = line.split()
        nodes.append(helper.make_node(op, inputs, [output]))
    weights = [numpy_helper.from_array(np.full((8, 8), k, np.float32), f"w{k}") for k in range(3)]
    weights += [numpy_helper.from_array(np.array(v, np.float32), n) for n, v in numbers.items()]
    x, *ys = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [4, 8]) for n in ("x", "y0", "y1", "y2"))
    graph = helper.make_graph(nodes, "g", [x], ys, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_on_a_cpu_what_is_fused_without_further_copies_competes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.search.guessing.LARGE", 0.0)
    shop, found, _ = hunted(three_products())
    together, apart = guessed(shop, (), found, [])
    assert [v.name for v in (together, apart)] == [FUSED, STAYING]
    assert all(v.is_guess for v in (together, apart))
    assert "Split" in [node.kind for node in together.graph.nodes]
    assert sorted({node.kind for node in apart.graph.nodes}) == ["MatMul", GELU_OPERATOR]
    monkeypatch.setattr(Counting, "deployment", Deployment("cuda"))
    shop, found, _ = hunted(three_products())
    assert [v.name for v in guessed(shop, (), found, [])] == [FUSED]
