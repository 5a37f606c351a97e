# pyright: basic
"""The other optimizers on one network: one race for all of them, and nothing timed twice."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper, save

from benchmarks import gpu_jobs, gpu_peers
from benchmarks.commandline import Done
from benchmarks.gpu_cells import BEST, DEFAULT, PEERS
from benchmarks.gpu_jobs import Workplace, files_of
from benchmarks.gpu_plan import Job
from benchmarks.gpu_race import Race
from benchmarks.gpu_steps import StepFailed
from benchmarks.waiting import Waiting
from superopt.cost.result import Comparison, PairTiming, SubjectTiming
from superopt.report import Interval, Latency

pytestmark = pytest.mark.unit

GRAPH = {"cuda.enable_cuda_graph": "1"}


def model(*operators: str):
    names = ["x", *(f"t{k}" for k in range(len(operators) - 1)), "y"]
    nodes = [helper.make_node(op, [names[k]], [names[k + 1]]) for k, op in enumerate(operators)]
    described = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    return helper.make_model(helper.make_graph(nodes, "g", described[:1], described[1:]))


def latency(seconds: float) -> Latency:
    return Latency(median=seconds, interval=Interval(low=seconds, high=seconds), spread=0.0, runs=9)


def raced(entrants: Sequence[Any], without: str = "") -> Race:
    """Each half as long as the one before; whoever is `without` a time did not run."""
    times = {name: 0.5**k for k, (name, _, _) in enumerate(entrants)}
    pairs = tuple(
        PairTiming(name=n, verdict="faster", reason="", speedup=times[DEFAULT] / t, interval=None, sittings=1, pairs=9)
        for n, t in times.items()
        if n != DEFAULT
    )
    subjects = tuple(SubjectTiming(name=n, latency=latency(t)) for n, t in times.items())
    errors: dict[str, float | str] = {n: "no CUDA graph" if n == without else 0.0 for n in times}
    return Race(errors, DEFAULT, Comparison(subjects=subjects, pairs=pairs, seconds=1.0, one_at_a_time=False))


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """Of four optimizers one crashes, one changes nothing, and two agree."""
    place = Workplace(tmp_path, "cpu", 1.0, 1.0, "code", time.monotonic() + 1000.0)
    files = files_of(place.work, ("gelu-spelled", "fp32", 1))
    files.folder.mkdir(parents=True)
    save(model("Relu", "Relu", "Neg"), files.model)
    files.reference.touch()
    results = {"onnxslim": model("Relu", "Neg"), "onnxscript": model("Relu", "Neg"), "ort.transformers": None}

    def run(command, timeout, log=None):
        made = next(Path(word) for word in map(str, command) if word.endswith(".onnx") and word != str(files.model))
        if made.stem == "onnxsim":
            return Done(-11, "boom")
        save(results[made.name.removesuffix(".onnx")] or model("Relu", "Relu", "Neg"), made)
        return Done(0, "")

    monkeypatch.setattr(gpu_jobs, "run", run)
    place.best["gelu-spelled", "fp32", 1] = GRAPH
    return place


JOB = Job("gelu-spelled", "fp32", 1, PEERS)


@pytest.mark.parametrize("ahead", [False, True])
def test_equal_results_are_timed_once_and_nobody_costs_the_others_theirs(
    work: Workplace, monkeypatch: pytest.MonkeyPatch, ahead: bool
) -> None:
    races: list[Any] = []

    def race(self: Workplace, job: Job, entrants: Sequence[Any], waiting: Any = None) -> Race:
        races.append([(name, options) for name, _, options in entrants])
        return raced(entrants)

    opened: list[Any] = []
    monkeypatch.setattr(Workplace, "race", race)
    monkeypatch.setattr(Workplace, "open_ahead", lambda _, job, entrants: opened.extend(entrants))
    if ahead:
        work.work_ahead(JOB)
        assert not races
        assert [name for name, _, _ in opened] == [DEFAULT, BEST, "onnxslim"]
    cells = {cell.method: cell for cell in work.cells(JOB)}
    assert list(cells) == list(PEERS)
    assert races == [[(DEFAULT, {}), (BEST, GRAPH), ("onnxslim", GRAPH)]]
    assert (cells["onnxsim"].status, cells["onnxsim"].detail) == ("failed", "SIGSEGV: boom")
    assert cells["ort.transformers"].status in ("unchanged", "does not apply")
    for peer in ("onnxslim", "onnxscript"):
        assert cells[peer].median == 0.25
        assert cells[peer].over_default == pytest.approx(0.25)
        assert cells[peer].over_best == pytest.approx(0.5)
        assert cells[peer].options == GRAPH


def test_a_race_that_was_opened_under_other_options_is_opened_anew(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    races: list[Any] = []

    def race(self: Workplace, job: Job, entrants: Sequence[Any], waiting: Any = None) -> Race:
        races.append((dict(entrants[1][2]), waiting))
        return raced(entrants)

    class Held(Waiting):
        def __init__(self, entrants: Sequence[Any]) -> None:
            self._process = subprocess.Popen(["sleep", "60"], start_new_session=True)
            self.entrants = entrants

    def open_ahead(place: Workplace, job: Job, entrants: Sequence[Any]) -> Waiting:
        place.room.everyone.append(held := Held(entrants))
        return held

    monkeypatch.setattr(Workplace, "race", race)
    monkeypatch.setattr(Workplace, "open_ahead", open_ahead)
    best = work.best.pop(JOB.place)
    work.work_ahead(JOB)
    (held,) = work.room.everyone
    work.best[JOB.place] = best  # superopt's job, beside it, has found them since
    assert next(c for c in work.cells(JOB) if c.method == "onnxslim").options == GRAPH
    assert races == [(GRAPH, None)]
    assert held._process.poll() is not None
    assert not work.room.everyone


def test_what_does_not_run_under_the_best_options_runs_under_none(
    work: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def race(self: Workplace, job: Job, entrants: Sequence[Any], waiting: Any = None) -> Race:
        return raced(entrants, without="onnxslim" if entrants[1][2] else "")

    monkeypatch.setattr(Workplace, "race", race)
    made = gpu_peers.made_by_all(work, JOB)
    cells = {cell.method: cell for cell in gpu_peers.cells_of(work, JOB, made, GRAPH)}
    assert (cells["onnxslim"].status, cells["onnxslim"].options) == ("ok", {})
    assert cells["onnxscript"].model_copy(update={"method": "onnxslim"}) == cells["onnxslim"]


def test_who_takes_the_race_down_does_so_to_nobody_elses_cost(work: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    results = {"onnxslim": model("Relu", "Neg"), "onnxscript": model("Neg", "Neg")}

    def run(command, timeout, log=None):
        made = next(Path(w) for w in map(str, command) if w.endswith(".onnx") and not w.endswith("model.onnx"))
        save(results.get(made.stem) or model("Relu", "Relu", "Neg"), made)
        return Done(0, "")

    def race(self: Workplace, job: Job, entrants: Sequence[Any], waiting: Any = None) -> Race:
        if any(name == "onnxscript" for name, _, _ in entrants):
            raise StepFailed(Done(-11, "boom"))
        return raced(entrants)

    monkeypatch.setattr(gpu_jobs, "run", run)
    monkeypatch.setattr(Workplace, "race", race)
    cells = {cell.method: cell for cell in work.cells(JOB)}
    assert cells["onnxslim"].status == "ok"
    assert (cells["onnxscript"].status, cells["onnxscript"].detail) == ("failed", "SIGSEGV: boom")
    assert cells["onnxsim"].status == "unchanged"
