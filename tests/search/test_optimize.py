# pyright: basic
"""Which model comes back: the decision for every outcome of check and clock, and the whole way on a small model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from superopt.cost.result import Comparison, PairTiming
from superopt.errors import BadModel, BadOption
from superopt.ir.graph import Graph, Label, make_node
from superopt.normalize import Normalized
from superopt.options import Options
from superopt.report import CheckReport, Interval, Rewrite, TimingReport
from superopt.search import optimize, trial, variants
from superopt.search.compare import bench_models, check_models
from superopt.search.ending import Ending
from superopt.search.hunted import Gain, Hunted
from superopt.search.hunting import Ground, Hunting
from superopt.search.optimize import Destination, Outcome, optimize_model
from superopt.search.trace import Traced
from superopt.search.variants import Variant
from tests.search.counted import counting_world

pytestmark = pytest.mark.ort

TEXT = """<ir_version: 8, opset_import: ["" : 17], producer_name: "p", metadata_props: ["k" : "v"]>
g (float[batch, 3] x, float[2] unused) => (float[batch, 3] y) <float[3] w = {1, 2, 3}> {
  a = Identity(x)
  b = Add(a, w)
  c = Identity(b)
  y = Relu(c)
}"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    proto = parser.parse_model(TEXT)
    proto.doc_string, proto.graph.doc_string = "about the model", "about the graph"
    for node in proto.graph.node:
        node.doc_string = f"about {node.op_type}"
        node.name = f"name of {node.output[0]}"
    (tmp_path / "in.onnx").write_bytes(proto.SerializeToString())
    return tmp_path / "in.onnx"


def optimized(source: Path, folder: str = "staging", ending: Ending | None = None, **options: Any) -> Outcome:
    where = Destination(source.parent / folder, "out.onnx", "out.onnx.data", False)
    given = {"target": "cpu", "budget": 0.1, "threads": 1, **options}
    return optimize_model(source, where, Options.of(**given), lambda *_: None, lambda *_: None, ending)


def timed(status: Any, low: float | None = None) -> TimingReport:
    interval = None if low is None else Interval(low=low, high=low + 0.05)
    speedup = None if low is None else low + 0.02
    return TimingReport(
        status=status, reason="", before=None, after=None, speedup=speedup, speedup_interval=interval, shapes={},
        frozen=False,
    )  # fmt: skip


def checked(status: Any) -> CheckReport:
    return CheckReport(status=status, reason="because", runs=1, inputs=[], outputs=[])


DECISIONS = [
    ("equal", timed("faster", 1.2), "faster", "optimized", "1.22× faster (1.20 to 1.25), outputs checked equal"),
    ("equal", timed("not faster", 0.99), "faster", "original", "0 %: rewritten, but not measurably faster"),
    ("equal", timed("not faster", 0.99), "not-slower", "optimized", "not slower, outputs checked equal"),
    ("equal", timed("not faster", 0.90), "not-slower", "original", "0 %: rewritten, but not measurably faster"),
    ("equal", timed("slower", 0.80), "not-slower", "original", "0 %: rewritten, but not measurably faster"),
    ("equal", timed("not faster"), "not-slower", "original", "0 %: rewritten, but not measurably faster"),
    ("equal", TimingReport.untimed("no clock"), "not-slower", "original", "could not be timed (no clock)"),
    ("unchecked", timed("faster", 2.0), "not-slower", "original", "could not be checked (because)"),
]


@pytest.mark.parametrize(("check", "timing", "accept", "returned", "verdict"), DECISIONS)
def test_what_comes_back(
    monkeypatch: pytest.MonkeyPatch, source: Path, check: str, timing: TimingReport, accept: str, returned: str,
    verdict: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(trial.Trial, "check", lambda self, path: checked(check))
    monkeypatch.setattr(trial.Trial, "race", lambda self, model, *_: timing)
    outcome = optimized(source, accept=accept)
    assert outcome.report.returned == returned
    assert outcome.report.verdict.startswith(verdict)
    same = outcome.written.path.read_bytes() == source.read_bytes()
    assert same == (returned == "original")
    assert outcome.report.rewrites


def test_a_model_that_differs_whatever_is_left_out_comes_back_as_it_was(
    monkeypatch: pytest.MonkeyPatch, source: Path
) -> None:
    monkeypatch.setattr(trial.Trial, "check", lambda self, path: checked("different"))
    monkeypatch.setattr(variants, "ATTEMPTS", 1)
    outcome = optimized(source)
    assert outcome.report.returned == "original"
    assert outcome.report.verdict.startswith("the rewritten model differs (because)")
    assert outcome.report.timing.status == "untimed"
    assert outcome.written.path.read_bytes() == source.read_bytes()


@pytest.fixture
def passes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rule is searched for: on so small a model the clock may find anything faster."""
    monkeypatch.setattr(Ground, "hunt", lambda self, *_: replace(Hunting.nothing(""), notes=()))


@pytest.mark.usefixtures("passes_alone")
def test_a_wrong_pass_is_caught_by_the_real_check(monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    """Relu becomes Abs: the check says so, halving finds it, the rest is kept."""
    honest = variants.normalize

    def wrong(model, *, growth_cap=None, forbid=(), limit=None, for_cuda=False):
        found = honest(model, growth_cap=growth_cap, forbid=forbid, limit=limit, for_cuda=for_cuda)
        if ("relu-to-abs", "y") in forbid or (limit is not None and len(found.rewrites) >= limit):
            return found
        graph = found.graph
        relu = graph.nodes[-1]
        bad = make_node("Abs", relu.inputs, (), relu.types)
        nodes, labels = (*graph.nodes[:-1], bad), {**graph.labels, bad: Label("bad", graph.labels[relu].outputs)}
        broken = Graph(
            graph.inputs, bad.outputs, nodes, graph.input_names, graph.output_names, name=graph.name, labels=labels,
            constants=graph.constants, origin=graph.origin,
        )  # fmt: skip
        return Normalized(broken, (*found.rewrites, Rewrite(name="relu-to-abs", place="y", proof="none")))

    monkeypatch.setattr(variants, "normalize", wrong)
    monkeypatch.setattr(optimize, "normalize", wrong)
    monkeypatch.setattr(trial.Trial, "race", lambda self, model, *_: timed("faster", 1.2))
    outcome = optimized(source)
    assert outcome.report.check.status == "equal"
    assert outcome.report.returned == "optimized"
    (note,) = outcome.report.notes
    assert note.startswith("relu-to-abs at y changed the outputs and was left out: output y")
    assert "relu-to-abs" not in {r.name for r in outcome.report.rewrites}
    assert [n.op_type for n in onnx.load(outcome.written.path).graph.node] == ["Add", "Relu"]


@pytest.mark.usefixtures("passes_alone")
def test_a_changed_model_keeps_everything_but_the_nodes_that_went(
    monkeypatch: pytest.MonkeyPatch, source: Path
) -> None:
    monkeypatch.setattr(trial.Trial, "race", lambda self, model, *_: timed("faster", 1.2))
    outcome = optimized(source, shape={"x": (5, 3)})
    assert outcome.report.check.status == "equal"
    before, after = onnx.load(source), onnx.load(outcome.written.path)
    kept = {n.name: n for n in before.graph.node if n.op_type != "Identity"}
    assert [n.name for n in after.graph.node] == list(kept)
    for node in after.graph.node:
        assert node.doc_string == kept[node.name].doc_string
    for proto in (before, after):
        proto.graph.ClearField("node")
    notes = [entry for entry in after.metadata_props if entry.key.startswith("superopt.")]
    assert [entry.key for entry in notes] == ["superopt.deployment"]
    after.metadata_props.remove(notes[0])
    assert after == before


def test_the_same_seed_gives_the_same_bytes(monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    """Where the clock says the same."""
    counting_world(monkeypatch)
    monkeypatch.setattr(trial.Trial, "race", lambda self, model, *_: timed("faster", 1.2))
    first, second = (optimized(source, folder).written.path.read_bytes() for folder in ("one", "two"))
    assert first == second
    assert first != source.read_bytes()


def test_a_small_gain_may_take_three_budgets(monkeypatch: pytest.MonkeyPatch, source: Path) -> None:
    given: list[tuple[float, ...]] = []

    def race(self, model, *time) -> TimingReport:
        given.append(time[:3])
        return timed("not faster", 0.99)

    monkeypatch.setattr(trial.Trial, "race", race)
    optimized(source, budget=0.5)
    assert [time[:2] for time in given] == [(0.5, 1.0)]


@pytest.mark.parametrize(
    ("speeds", "chosen"),
    [
        ({"tidied": 1.005, "all rewrites": 1.0}, "all rewrites"),  # alike: regions were timed more precisely
        ({"tidied": 1.05, "all rewrites": 1.0}, "tidied"),
        ({"tidied": 1.0, "all rewrites": 1.05}, "all rewrites"),
        ({"tidied": None, "all rewrites": None}, "all rewrites"),
    ],
)
def test_the_variant_that_is_faster_as_a_whole_is_chosen(
    monkeypatch: pytest.MonkeyPatch, source: Path, speeds: dict[str, float | None], chosen: str
) -> None:
    region = Traced(("y",), (), "", 1)
    hunted = Hunted(gains=[Gain(1, 2, (1.0, 0.9), (1.0, 0.9), ("rule",))])
    pairs = tuple(
        PairTiming(name=name, verdict="not faster", reason="", speedup=speed, interval=None, sittings=2, pairs=2)
        for name, speed in speeds.items()
    )
    comparison = Comparison(subjects=(), pairs=pairs, seconds=1.0, one_at_a_time=False)
    monkeypatch.setattr(trial.Trial, "compare_all", lambda self, models, seconds, heard: (comparison, False))
    where = Destination(source.parent / "staging", "out.onnx", "out.onnx.data", False)
    run = optimize._Run(source, where, Options.of(target="cpu"), lambda *_: None, lambda *_: None, Ending())
    change = (Rewrite(name="pass", place="y", proof="none"),)
    graphs = [
        Variant("tidied", run.model.graph, change),
        Variant("all rewrites", run.model.graph, change, (region,)),
    ]
    assert hunted.saving(graphs[1].trace) == pytest.approx(0.2)
    assert run.chooser.best(graphs, hunted)[0].name == chosen


def test_an_end_that_is_asked_for_is_told_and_what_was_found_is_checked(source: Path) -> None:
    told: list[bool] = []
    outcome = optimized(source, ending=Ending(lambda: bool(told), lambda: told.append(True)), accept="not-slower")
    report = outcome.report
    assert told == [True]
    assert report.interrupted
    assert report.notes[0].startswith("interrupted: ")
    assert report.check.status == "equal"
    assert report.timing.before is not None
    assert report.search is None
    assert report.deployment is not None
    assert not report.deployment.searched
    assert not optimized(source, "whole").report.interrupted


def test_the_best_so_far_is_told_and_ends_with_what_is_returned(source: Path) -> None:
    told: list[tuple[float, str]] = []
    report = optimized(source, ending=Ending(is_worth=lambda *worth: told.append(worth))).report
    assert told
    assert told[-1] == (report.timing.speedup if report.returned == "optimized" else 1.0, "measured")


@pytest.mark.thorough
def test_what_was_timed_in_a_hurry_is_not_frozen(source: Path, tmp_path: Path) -> None:
    costs = tmp_path / "costs.db"
    told: list[bool] = []
    optimized(source, "hurried", Ending(lambda: bool(told), lambda: told.append(True)), costs=costs)
    assert told
    assert not optimized(source, "whole", costs=costs).report.timing.frozen


@pytest.mark.thorough
def test_costs_freeze_the_decision(source: Path, tmp_path: Path) -> None:
    first, second = (optimized(source, f, costs=tmp_path / "costs.db") for f in ("one", "two"))
    assert [o.report.timing.frozen for o in (first, second)] == [False, True]
    assert first.report.timing.model_copy(update={"frozen": True}) == second.report.timing
    assert first.written.path.read_bytes() == second.written.path.read_bytes()


def test_a_model_that_nothing_changes_comes_back_byte_for_byte(tmp_path: Path) -> None:
    proto = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) {y = Relu(x)}')
    data = proto.SerializeToString() + b"\xfa\x3f\x03abc"  # a field that no version of ONNX has
    (tmp_path / "in.onnx").write_bytes(data)
    outcome = optimized(tmp_path / "in.onnx")
    assert outcome.written.path.read_bytes() == data
    assert outcome.report.verdict.startswith("0 %: nothing to improve")


@pytest.mark.parametrize(("field", "value"), [("opset", 27), ("ir", 14)])
def test_a_model_from_the_future_is_refused_with_what_is_supported(tmp_path: Path, field: str, value: int) -> None:
    proto = parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) {y = Relu(x)}')
    if field == "ir":
        proto.ir_version = value
    else:
        proto.opset_import[0].version = value
    (tmp_path / "in.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(BadModel, match=rf"{value}; onnxruntime .* supports up to \d+"):
        optimized(tmp_path / "in.onnx")


def test_the_result_may_not_take_the_place_of_the_weights(tmp_path: Path) -> None:
    proto = parser.parse_model(TEXT)
    tensor = proto.graph.initializer[0]
    (tmp_path / "out.onnx").write_bytes(np.array([1, 2, 3], np.float32).tobytes())
    tensor.ClearField("float_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="out.onnx")
    (tmp_path / "in.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(BadOption, match="keeps its weights in a file of that name"):
        optimized(tmp_path / "in.onnx")


def test_check_and_bench_of_whole_files(source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(parser.parse_model(TEXT.replace("Relu", "Abs")).SerializeToString())
    custom = tmp_path / "custom.onnx"
    custom.write_bytes(parser.parse_model(TEXT.replace("Relu", "Nope")).SerializeToString())
    options = Options(target="cpu", threads=1, budget=0.2)
    statuses = [check_models(source, b, options, lambda *_: None).status for b in (source, other, custom)]
    assert statuses == ["equal", "different", "unchecked"]
    rows = bench_models([source, other, custom], options, lambda *_: None).rows
    assert [row.latency is None for row in rows] == [False, False, True]
    assert rows[0].verdict == "the yardstick"
    assert "Nope" in rows[2].verdict
