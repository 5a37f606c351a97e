"""Regions on the real runtime. No test asserts a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from superopt.cost import calibration, timer
from superopt.cost.cache import CostCache
from superopt.cost.calibration import calibrate
from superopt.cost.coefficients import PRIORS
from superopt.cost.columns import Column
from superopt.cost.race import NO_TIME_LEFT
from superopt.cost.regions import RegionSubject, region_subject, time_regions
from superopt.cost.samples import samples
from superopt.cost.samples_of_gpus import _of_windows as of_windows  # pyright: ignore[reportPrivateUsage]
from superopt.cost.timer import RegionTimer
from superopt.cost.workloads import data, host, node, weights, workload
from superopt.errors import CannotRun
from superopt.ir.graph import Graph, Value, make_node, make_parameter
from superopt.ir.types import DType, TensorType
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session

HERE = Deployment(threads=1)


def product(size: int) -> Graph:
    x = data(0, (size, size))
    return workload([x], node("MatMul", [x, weights(size, size)], (size, size)))


def subject(graph: Graph) -> RegionSubject:
    return region_subject(host(), graph, {})


def broken() -> RegionSubject:
    x = data(0, (2,))
    return subject(workload([x], node("NoSuchOperator", [x], (2,))))


def unsized() -> RegionSubject:
    x = Value(make_parameter(0, TensorType(DType.FLOAT32, ("n",))))
    return subject(workload([x], make_node("Relu", [x], {}, [x.type])))


@pytest.mark.ort
def test_regions_have_times_and_what_cannot_run_has_a_reason():
    reasons: dict[int, str] = {}
    found = time_regions(
        [subject(product(64)), broken(), unsized(), subject(product(32))],
        HERE,
        2.0,
        lambda i, w: reasons.update({i: w}),
    )
    assert [t is None for t in found] == [False, True, True, False]
    assert all(t > 0 for t in found if t is not None)
    assert "NoSuchOperator" in reasons[1]
    assert reasons[2] == "the sizes of its inputs are unknown"
    assert time_regions([], HERE, 1.0) == []


@pytest.mark.ort
def test_calibration_prices_the_device_and_a_cost_file_freezes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    few = [product(64), product(16), *(g for g in samples() if g.nodes[-1].op == "Relu")]
    monkeypatch.setattr(calibration, "samples", lambda *_: iter(few))
    with CostCache(tmp_path / "c") as cache:
        first = calibrate(RegionTimer(HERE, cache), 3.0)
    assert first.of(Column("product", "operation")) != PRIORS.of(Column("product", "operation"))
    monkeypatch.setattr(timer, "time_regions", _must_not_run)
    monkeypatch.setattr(timer, "time_yardstick", _must_not_run)
    with CostCache(tmp_path / "c") as cache:
        assert calibrate(RegionTimer(HERE, cache), 3.0) == first


def _must_not_run(*_: object, **__: object) -> object:
    raise AssertionError("the clock was asked for what the file holds")


@pytest.mark.ort
@pytest.mark.slow
def test_every_sample_of_the_calibration_runs():
    for graph in samples():
        found = subject(graph)
        feeds = found.feeds()
        assert feeds is not None, graph.nodes
        with Session(found.model(), HERE) as session:
            session.run(feeds)


@pytest.mark.ort
def test_those_of_windows_run_too():
    """On a CPU as well, in float32; all others of a GPU are large or have kernels there alone."""
    kinds = set[str]()
    for graph in of_windows(DType.FLOAT32):
        found = subject(graph)
        feeds = found.feeds()
        assert feeds is not None
        with Session(found.model(), HERE) as session:
            results = session.run(feeds)
        shapes = [np.asarray(result).shape for result in results.values()]
        assert shapes == [v.tensor_type.shape for v in graph.outputs if v.tensor_type]
        kinds.add(graph.nodes[-1].op)
    assert {"Gather", "Slice", "FusedMatMul", "MultiHeadAttention"} <= kinds


class Clock:
    """Stands for `time_regions`: answers from a table and notes what it was asked."""

    def __init__(self, table: dict[str, float | str]) -> None:
        self.table, self.asked = table, list[list[str]]()

    def __call__(self, subjects: list[RegionSubject], *arguments: object, **_: object) -> list[float | None]:
        tell = arguments[2]
        assert callable(tell)
        self.asked.append([s.key for s in subjects])
        found: list[float | None] = []
        for i, s in enumerate(subjects):
            answer = self.table[s.key]
            if isinstance(answer, str):
                tell(i, answer)
            found.append(answer if isinstance(answer, float) else None)
        return found


def named(*names: str) -> list[RegionSubject]:
    return [RegionSubject(name, bytes, dict) for name in names]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock({"a": 1.0, "b": 2.0, "c": 3.0, "bad": "it does not run", "late": NO_TIME_LEFT})
    monkeypatch.setattr(timer, "time_regions", made)
    monkeypatch.setattr(timer, "time_yardstick", lambda *_: 1.0)
    return made


@pytest.mark.unit
def test_what_is_known_is_not_asked_again_but_for_the_first(clock: Clock):
    here = RegionTimer(HERE)
    assert here.time(named("a", "b"), 1.0) == [1.0, 2.0]
    assert here.time(named("a", "b"), 1.0) == [1.0, 2.0]
    clock.table["a"] = 2.0  # a slow minute: c, seen beside it, is told by its ratio to it
    assert here.time(named("a", "b", "c"), 1.0) == [1.0, 2.0, 1.5]
    assert clock.asked == [["a", "b"], ["a", "c"]]


@pytest.mark.unit
def test_what_failed_is_remembered_and_what_was_late_is_not(clock: Clock):
    here = RegionTimer(HERE)
    reasons: list[tuple[int, str]] = []
    for _ in range(2):
        assert here.time(named("a", "bad", "late"), 1.0, lambda i, why: reasons.append((i, why))) == [1.0, None, None]
    assert reasons == [(1, "it does not run"), (2, NO_TIME_LEFT)] * 2
    assert clock.asked == [["a", "bad", "late"], ["a", "late"]]


@pytest.mark.unit
def test_what_was_timed_in_a_hurry_is_not_remembered(clock: Clock):
    here = RegionTimer(HERE)
    assert here.time(named("a", "b"), 1.0, hurried=lambda: True) == [None, None]
    assert here.time(named("a", "b"), 1.0) == [1.0, 2.0]


@pytest.mark.unit
def test_a_cost_file_answers_the_next_run(clock: Clock, tmp_path: Path):
    with CostCache(tmp_path / "c") as cache:
        RegionTimer(HERE, cache).time(named("a", "bad"), 1.0)
        clock.asked.clear()
    with CostCache(tmp_path / "c") as cache:
        assert RegionTimer(HERE, cache).time(named("a", "bad"), 1.0) == [1.0, None]
        assert RegionTimer(Deployment(threads=2), cache).time(named("a"), 1.0) == [1.0]
    assert clock.asked == [["a"]]


@pytest.mark.unit
def test_a_region_of_unknown_type_cannot_be_made():
    x = Value(make_parameter(0, None))
    with pytest.raises(CannotRun):
        subject(workload([x], make_node("Relu", [x], {}, [None]))).model()


@pytest.mark.unit
def test_where_the_first_does_not_run_in_a_deployment_all_are_timed_in_the_other(monkeypatch: pytest.MonkeyPatch):
    recorded = Deployment("cpu", threads=1, config=(("recorded", "1"),))
    answers = {recorded: {"a": 1.0, "b": 0.5, "bad": None}, HERE: {"a": 9.0, "b": 8.0, "bad": 7.0}}

    def times(subjects: list[RegionSubject], deployment: Deployment, _: float, tell: object, **__: object):
        assert callable(tell)
        found = [answers[deployment][s.key] for s in subjects]
        for i, seconds in enumerate(found):
            if seconds is None:
                tell(i, "it cannot be captured")
        return found

    monkeypatch.setattr(timer, "time_regions", times)
    monkeypatch.setattr(timer, "time_yardstick", lambda *_: 1.0)
    both = RegionTimer(recorded, otherwise=RegionTimer(HERE))
    assert both.time(named("a", "b"), 1.0) == [1.0, 0.5]
    assert both.time(named("a", "bad"), 1.0) == [1.0, None]
    assert both.time(named("bad", "a"), 1.0) == [7.0, 9.0]


@pytest.mark.unit
def test_what_had_too_little_memory_is_asked_again_in_the_next_run(clock: Clock, tmp_path: Path):
    clock.table["b"] = "running: CUDA failure 2: out of memory"
    with CostCache(tmp_path / "c") as cache:
        here = RegionTimer(HERE, cache)
        for _ in range(2):
            assert here.time(named("a", "b"), 1.0) == [1.0, None]
    assert clock.asked == [["a", "b"]]
    clock.table["b"] = 2.0
    with CostCache(tmp_path / "c") as cache:
        assert RegionTimer(HERE, cache).time(named("a", "b"), 1.0) == [1.0, 2.0]
