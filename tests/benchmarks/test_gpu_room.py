"""What is worked ahead waits to be timed alone; what fails there, or finds no room."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu, gpu_jobs, gpu_room
from benchmarks.commandline import TIMED_OUT, Done
from benchmarks.gpu_cells import BEST, COMPILED, CORE, DEFAULT, EAGER, OURS, Cell, Ledger
from benchmarks.gpu_jobs import Workplace
from benchmarks.gpu_plan import Job, Pace
from benchmarks.gpu_room import Room
from benchmarks.gpu_steps import OutOfTime, StepFailed
from benchmarks.waiting import Waiting
from tests.benchmarks.gpu_world import PLACE, cell, made, place, raced, run

pytestmark = pytest.mark.unit


def test_models_are_optimized_and_compiled_side_by_side_and_raced_when_all_are_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [("bert_base", CORE), ("resnet50", CORE), ("resnet50", (COMPILED,))]
    jobs = [Job(model, "fp16", 1, methods) for model, methods in groups]
    work = place(tmp_path)
    work.beside = 2
    for job in jobs:
        gpu_jobs.files_of(work.work, job.place).folder.mkdir(parents=True, exist_ok=True)
        gpu_jobs.files_of(work.work, job.place).reference.touch()
    done: list[str] = []

    def optimized(_: Workplace, job: Job, __: object) -> gpu_jobs.Optimized:
        done.append(f"optimized {job.model}")
        return tmp_path, None, {}, {}, ""

    class Held(Waiting):
        def __init__(self, step: str, task: dict[str, Any]) -> None:
            self.step, self.model = step, task["place"][0]

        def until_ready(self, left: Callable[[], float]) -> Done | None:
            done.append(f"opened for {self.step} {self.model}")
            return None

        def finish(self, seconds: float) -> tuple[Done, dict[str, Any] | None]:
            done.append(f"{self.step} {self.model}")
            told = (
                raced(BEST, {BEST: 1e-3, DEFAULT: 2e-3}) if self.step == "race" else raced(COMPILED, {COMPILED: 1e-3})
            )
            return Done(0, ""), {**told, "ready": 70.0}

    def begin(_: Room, command: Any, task: dict[str, Any], folder: Path) -> Waiting:
        return Held(command[-1], task)

    monkeypatch.setattr(Workplace, "_optimized", optimized)
    monkeypatch.setattr(Room, "begin", begin)
    ledger = Ledger.opened(tmp_path / "out.json", [], run("one"))
    gpu.measure(work, ledger, jobs, Pace())
    opened = ["opened for race bert_base", "opened for race resnet50", "opened for torch resnet50"]
    assert sorted(done[:5]) == [*opened, "optimized bert_base", "optimized resnet50"]
    assert done[5:] == ["race bert_base", "race resnet50", "torch resnet50"]
    assert ledger.cells["resnet50", "fp16", 1, COMPILED].detail == "70 s until its first answer"
    assert work.reserved == 0.0


def test_a_step_ends_when_what_is_kept_for_others_leaves_it_nothing(tmp_path: Path) -> None:
    """Races that were found to wait while it ran must be run: it had more time when it began."""
    work = place(tmp_path, seconds=60.0)
    started = time.monotonic()
    threading.Timer(0.5, lambda: setattr(work, "reserved", 60.0)).start()
    with pytest.raises(OutOfTime):
        work.run((sys.executable, "-c", "import time; time.sleep(50)"), 50.0, PLACE, "optimize")
    assert time.monotonic() - started < 20.0


def test_superopts_own_races_are_run_before_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [Job("bert_base", "fp16", 1, (EAGER,)), Job("resnet50", "fp16", 1, CORE)]
    work = place(tmp_path)
    work.beside = 2
    done: list[str] = []
    ahead: set[Job] = set()

    def cells(_: Workplace, job: Job) -> list[Cell]:
        done.append(job.model)
        return [cell(EAGER, place=job.place)]

    monkeypatch.setattr(Workplace, "work_ahead", lambda _, job: ahead.add(job))
    monkeypatch.setattr(Workplace, "is_ahead", lambda _, job: job in ahead)
    monkeypatch.setattr(Workplace, "cells", cells)
    gpu.measure(work, Ledger.opened(tmp_path / "out.json", [], run("one")), jobs, Pace())
    assert done == ["resnet50", "bert_base"]


@pytest.mark.parametrize("is_done", [True, False])
def test_what_no_time_is_left_to_race_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_done: bool
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(Workplace, "work_ahead", lambda _, job: begun.append(job.model))
    monkeypatch.setattr(Workplace, "is_ahead", lambda _, job: is_done)
    jobs = [Job(model, "fp16", 1, CORE) for model in ("bert_base", "resnet50")]
    work = place(
        tmp_path, seconds=100.0 + 2 * (1.0 + gpu.STARTING) - 1.0
    )  # with the race of one, there is no room for another
    gpu.work_ahead(work, jobs, Pace({OURS: [100.0] * 1000}))
    assert begun == (["bert_base"] if is_done else ["bert_base", "resnet50"]), "what is not there needs no race"


def test_where_no_more_can_wait_those_that_do_are_timed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [Job(model, "fp16", 1, (EAGER,)) for model in ("bert_base", "resnet50", "gpt2")]
    work = place(tmp_path)
    work.beside = 2
    done: list[str] = []

    def prepared(_: Workplace, step: str, job: Job, limit: float, **task: Any) -> Waiting:
        done.append(f"ahead {job.model}")
        work.room.everyone.append(object.__new__(Waiting))
        return work.room.everyone[-1]

    def cells(_: Workplace, job: Job) -> list[Cell]:
        done.append(f"timed {job.model}")
        work.room.everyone.pop()
        return [cell(EAGER, place=job.place)]

    monkeypatch.setattr(gpu_room, "MOST", 2)
    monkeypatch.setattr(gpu_room, "LEFT_FREE", 0.0)
    monkeypatch.setattr(Workplace, "made", lambda *_: None)
    monkeypatch.setattr(Workplace, "prepared", prepared)
    monkeypatch.setattr(Workplace, "cells", cells)
    ledger = Ledger.opened(tmp_path / "out.json", [], run("one"))
    gpu.measure(work, ledger, jobs, Pace())
    timed = ["timed bert_base", "timed resnet50"]
    assert done == ["ahead bert_base", "ahead resnet50", *timed, "ahead gpt2", "timed gpt2"]


def test_what_fails_ahead_is_told_and_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = place(tmp_path)
    work.beside = 2
    begun: list[object] = []

    def prepared(_: Room, *words: object) -> Waiting:
        begun.append(words)
        raise StepFailed(Done(-6, "abort"))

    monkeypatch.setattr(Room, "prepared", prepared)
    ledger = Ledger.opened(tmp_path / "out.json", [], run("one"))
    gpu.measure(work, ledger, [made(work)], Pace())
    assert ledger.cells["bert_base", "fp16", 1, COMPILED].detail == "SIGABRT: abort"
    assert len(begun) == 1


def test_what_was_too_slow_beside_others_is_tried_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = place(tmp_path)
    work.beside = 2

    def prepared(_: Room, *words: object) -> Waiting:
        raise StepFailed(Done(TIMED_OUT, "stopped"))

    def step(_: Workplace, name: str, *__: Any, **task: Any) -> Any:
        return {**raced(COMPILED, {COMPILED: 1e-3}), "ready": 70.0}

    monkeypatch.setattr(Room, "prepared", prepared)
    monkeypatch.setattr(Workplace, "step", step)
    ledger = Ledger.opened(tmp_path / "out.json", [], run("one"))
    gpu.measure(work, ledger, [made(work)], Pace())
    assert ledger.cells["bert_base", "fp16", 1, COMPILED].median == 1e-3


def test_what_no_time_was_left_to_finish_is_left_for_the_next_run(tmp_path: Path) -> None:
    class Slow(Waiting):
        def __init__(self) -> None:
            self.folder = tmp_path

        def finish(self, seconds: float) -> tuple[Done, dict[str, Any] | None]:
            return Done(TIMED_OUT, f"stopped after {seconds:.0f} s"), None

    room = Room(tmp_path)
    for patience, error in ((3.0, OutOfTime), (30.0, StepFailed)):
        room.everyone.append(slow := Slow())
        with pytest.raises(error):
            room.finished(slow, 10.0, patience)
    assert not room.everyone
