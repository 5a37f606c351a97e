"""The benchmark on a GPU, as far as it can be seen without one: what is chosen, kept, and said of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu_jobs, gpu_plan, gpu_table
from benchmarks.commandline import TIMED_OUT, Done
from benchmarks.gpu_cells import (
    BEST,
    COMPILED,
    CORE,
    DEFAULT,
    EAGER,
    HAND,
    OURS,
    PEERS,
    TUNED,
    Cell,
    Ledger,
    Made,
    read,
)
from benchmarks.gpu_jobs import Workplace, beyond
from benchmarks.gpu_plan import Job
from benchmarks.gpu_race import Race
from benchmarks.gpu_ratios import composed, over_ours
from benchmarks.gpu_steps import OutOfTime, StepFailed
from benchmarks.records import Ratio
from tests.benchmarks.gpu_world import CODE, PLACE, around, cell, comparison, made, place, raced, run

pytestmark = pytest.mark.unit


# ---------------------------------------------------------------------- what is kept


def test_a_run_goes_on_where_the_last_one_was_stopped(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    ledger = Ledger.opened(path, [], run())
    for method in CORE:
        ledger.add(cell(method))
    for peer in PEERS:
        ledger.add(cell(peer, None, status="failed", detail="SIGSEGV"))
    again = Ledger.opened(tmp_path / "new.json", [path, tmp_path / "missing.json"], run())
    planned = gpu_plan.jobs([], "^bert_base$", [("fp16", 1)], [OURS, "onnxsim", EAGER])
    todo = list(gpu_plan.left(planned, lambda key: again.is_done(key, CODE)))
    assert todo == [Job("bert_base", "fp16", 1, (EAGER,))]
    more = list(gpu_plan.left(planned, lambda key: again.is_done(key, CODE), "^bert_base fp16 b1 superopt"))
    assert [job.methods for job in more] == [CORE, (EAGER,)]


def test_new_code_asks_for_new_cells_of_its_own_alone(tmp_path: Path) -> None:
    ledger = Ledger.opened(tmp_path / "gpu.json", [], run())
    ledger.add(*(cell(method) for method in (*CORE, COMPILED)))
    assert ledger.is_done((*PLACE, OURS), CODE)
    assert not ledger.is_done((*PLACE, OURS), "other")
    assert ledger.is_done((*PLACE, OURS), "other", stale=True)
    assert ledger.is_done((*PLACE, COMPILED), "other")


def test_cells_remember_their_run_and_runs_without_cells_go(tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"{i}.json" for i in range(3))
    Ledger.opened(first, [], run("one")).add(cell(OURS), cell(EAGER))
    Ledger.opened(second, [first], run("two")).add(cell(OURS, 0.002))
    book = read(second)
    assert {c.method: book.runs[c.run].code for c in book.cells} == {OURS: "two", EAGER: "one"}
    Ledger.opened(third, [second], run("three")).add(cell(OURS), cell(EAGER))
    assert [r.code for r in read(third).runs] == ["three"]


# ---------------------------------------------------------------------- jobs


def test_a_crash_costs_one_cell_and_is_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = place(tmp_path)
    job = made(work)
    monkeypatch.setattr(gpu_jobs, "run", lambda command, timeout, log=None: Done(-11, "boom"))
    (found,) = work.cells(job)
    assert (found.status, found.detail) == ("failed", "SIGSEGV: boom")
    assert found.median is None


def test_a_hang_is_one_too_unless_the_whole_run_was_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = Done(TIMED_OUT, "stopped after 120 s")
    monkeypatch.setattr(gpu_jobs, "run", lambda command, timeout, log=None: stopped)
    work = place(tmp_path)
    job = made(work)
    assert work.cells(job)[0].status == "timed out"
    short = place(tmp_path, seconds=5.0)
    with pytest.raises(OutOfTime):
        short.cells(job)
    with pytest.raises(OutOfTime):
        place(tmp_path, seconds=-1.0).cells(job)


def test_what_has_no_torch_form_says_so(tmp_path: Path) -> None:
    work = place(tmp_path)
    assert work.cells(made(work, "magika"))[0].status == "does not apply"


def test_what_was_merged_by_hand_is_timed_with_the_better_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = place(tmp_path)
    job = Job(made(work, "lora-block").model, "fp16", 1, (HAND,))
    assert work.cells(job)[0].status == "does not apply", "there is no such file"
    hand = gpu_jobs.files_of(work.work, job.place).hand
    hand.touch()
    work.best[job.place] = {"cuda.enable_cuda_graph": "1"}
    entrants: list[Any] = []

    def step(self: Workplace, name: str, *_: Any, **task: Any) -> Any:
        entrants.extend(task["entrants"])
        return raced(DEFAULT, {DEFAULT: 3.0, HAND: 2.0, f"{HAND} with options": 1.0})

    monkeypatch.setattr(Workplace, "step", step)
    [found] = work.cells(job)
    assert (found.method, found.status, found.median) == (HAND, "ok", 1.0)
    assert found.over_default is None, "it is compared by its time"
    original = str(gpu_jobs.files_of(work.work, job.place).model)
    assert [model for _, model, _ in entrants] == [original, str(hand), str(hand), original]


def core_cells(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    returned: str | None,
    answers: list[Any],
    target: str = "cpu",
    original: dict[str, str] | None = None,
) -> dict[str, Cell]:
    """The three cells of a job whose steps answer as given; an exception is raised instead."""
    work = replace(place(tmp_path), target=target)
    found = None if returned is None else Made.model_validate({"returned": returned, "verdict": "v", "check": "equal"})
    options = {"cuda.enable_cuda_graph": "1", "intra_op_num_threads": "4"}

    def step(self: Workplace, name: str, *_: Any, **task: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(Workplace, "step", step)
    monkeypatch.setattr(Workplace, "_optimized", lambda *_: (tmp_path / "o.onnx", found, options, original, "?"))
    job = made(work)
    return {c.method: c for c in work.cells(Job(job.model, job.dtype, job.batch, CORE))}


OPTIONS = {"options": {"cuda.prefer_nhwc": "1", "graph_optimization_level": "ORT_ENABLE_ALL"}}


def test_the_three_are_raced_against_superopts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = raced(OURS, {OURS: 0.5e-3, BEST: 1e-3, DEFAULT: 2e-3})
    cells = core_cells(tmp_path, monkeypatch, "optimized", [OPTIONS, answer])
    assert {m: c.over_ours for m, c in cells.items()} == pytest.approx({OURS: 1.0, BEST: 2.0, DEFAULT: 4.0})
    assert {m: c.over_default for m, c in cells.items()} == pytest.approx({OURS: 0.25, BEST: 0.5, DEFAULT: 1.0})
    assert cells[BEST].options == {"cuda.prefer_nhwc": "1"}
    assert cells[OURS].options == {"cuda.enable_cuda_graph": "1"}


def test_what_superopt_found_for_the_original_is_not_searched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = raced(OURS, {OURS: 0.5e-3, BEST: 1e-3, DEFAULT: 2e-3})
    cells = core_cells(tmp_path, monkeypatch, "optimized", [answer], original={"cuda.sdpa_kernel": "1"})
    assert cells[BEST].options == {"cuda.sdpa_kernel": "1"}


def test_where_the_original_came_back_it_is_the_best_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = core_cells(tmp_path, monkeypatch, "original", [raced(BEST, {BEST: 1e-3, DEFAULT: 2e-3})])
    assert cells[OURS].median == cells[BEST].median
    assert cells[BEST].over_ours == 1.0
    assert cells[DEFAULT].over_ours == pytest.approx(2.0)


def test_options_that_are_none_are_not_timed_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_jobs, "beyond", lambda options: {})
    cells = core_cells(tmp_path, monkeypatch, "original", [raced(DEFAULT, {DEFAULT: 2e-3})], target="cuda")
    assert {m: c.median for m, c in cells.items()} == {DEFAULT: 2e-3, BEST: 2e-3, OURS: 2e-3}
    assert {m: c.over_ours for m, c in cells.items()} == {DEFAULT: 1.0, BEST: 1.0, OURS: 1.0}
    answer = raced(OURS, {OURS: 1e-3, DEFAULT: 2e-3})
    cells = core_cells(tmp_path / "again", monkeypatch, "optimized", [OPTIONS, answer], target="cuda")
    assert {m: c.over_ours for m, c in cells.items()} == pytest.approx({DEFAULT: 2.0, BEST: 2.0, OURS: 1.0})


def test_without_a_result_the_others_still_have_their_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = core_cells(tmp_path, monkeypatch, None, [OPTIONS, raced(BEST, {BEST: 1e-3, DEFAULT: 2e-3})])
    assert (cells[OURS].status, cells[OURS].detail) == ("failed", "?")
    assert cells[DEFAULT].median == 2e-3
    assert cells[DEFAULT].over_ours is None


def test_a_result_that_takes_the_race_down_leaves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash = StepFailed(Done(-6, "abort"))
    race = raced(BEST, {BEST: 1e-3, DEFAULT: 2e-3})
    cells = core_cells(tmp_path, monkeypatch, "optimized", [OPTIONS, crash, race])
    assert (cells[OURS].status, cells[OURS].detail) == ("failed", "SIGABRT: abort")
    assert cells[BEST].status == "ok"
    assert cells[BEST].over_ours is None


def test_an_answer_off_by_more_than_the_tolerance_is_wrong() -> None:
    told = comparison({OURS: 1e-3, BEST: 1e-3}, {BEST: 1.0})
    found = Race({OURS: 0.02, BEST: float("inf"), DEFAULT: "out of memory"}, OURS, told)
    assert found.fields(OURS, "fp32")["status"] == "wrong"
    assert found.fields(OURS, "fp16")["status"] == "ok"
    assert found.fields(BEST, "fp16")["status"] == "wrong"
    assert found.fields(DEFAULT, "fp16") == {"status": "failed", "detail": "out of memory"}


def test_options_are_told_as_far_as_they_are_unusual() -> None:
    usual = {"execution_provider": "CUDAExecutionProvider", "graph_optimization_level": "ORT_ENABLE_ALL"}
    assert beyond(usual) == {}
    assert beyond({**usual, "cuda.sdpa_kernel": "1"}) == {"cuda.sdpa_kernel": "1"}


# ---------------------------------------------------------------------- what is said


def test_independent_errors_add_up_in_squares() -> None:
    found = composed(Ratio(value=2.0, low=1.0, high=4.0), Ratio(value=3.0, low=3.0, high=3.0))
    assert (found.value, found.low, found.high) == pytest.approx((6.0, 3.0, 12.0))
    assert composed(Ratio(value=2.0), Ratio(value=3.0, low=1.0, high=9.0)) == Ratio(value=6.0)


def test_ratios_are_taken_from_the_closest_measurement() -> None:
    ours = cell(OURS, 0.5e-3, interval=around(0.5e-3), over_default=0.25, over_default_interval=around(0.25))
    best = cell(BEST, 9.0, over_ours=2.0, over_ours_interval=around(2.0))
    peer = cell("onnxsim", 9.0, over_default=0.5, over_default_interval=around(0.5))
    tuned = cell("onnxslim", 1e-3, over_default=0.75, options={"cuda.enable_cuda_graph": "1"})
    torch = cell(COMPILED, 1e-3, interval=around(1e-3))
    cells = {c.key: c for c in (ours, best, peer, tuned, torch)}
    methods = (BEST, "onnxsim", "onnxslim", COMPILED)
    values = {m: ratio.value for m in methods if (ratio := over_ours(cells, PLACE, m))}
    assert values == pytest.approx(dict.fromkeys(methods, 2.0)), "with options a time is the device's, not the host's"
    beside = peer.model_copy(update={"over_best": 1.5, "over_best_interval": around(1.5)})
    found = over_ours({**cells, beside.key: beside}, PLACE, "onnxsim")
    assert found is not None
    assert found.value == pytest.approx(3.0), "the original with its best options ran beside both"
    stale = {**cells, best.key: best.model_copy(update={"code": "other", "over_default": 0.75})}
    found = over_ours(stale, PLACE, BEST)
    assert found is not None
    assert found.value == pytest.approx(3.0), "another state of the code was its yardstick"


def test_an_answer_as_far_off_as_the_originals_own_is_not_wrong() -> None:
    """With TF32, some networks are off by more than the tolerance as they are."""

    def wrong(error: float) -> bool:
        found = cell("onnxsim", status="wrong", error=error)
        cells = {c.key: c for c in (found, cell(DEFAULT, status="wrong", error=0.06), cell(BEST, error=0.01))}
        return gpu_table.is_wrong(cells, found)

    assert not wrong(0.07)
    assert wrong(0.13)
    alone = cell("onnxsim", status="wrong", error=0.07)
    assert gpu_table.is_wrong({alone.key: alone}, alone), "nothing is known of the original"
    other = alone.model_copy(update={"error": None})
    assert gpu_table.is_wrong({other.key: other}, other), "shapes or NaNs differ"


def test_the_table_marks_what_was_lost_and_leaves_out_what_is_wrong() -> None:
    ours = cell(OURS, 1e-3, interval=around(1e-3), made=Made(returned="optimized", verdict="", check="equal"))
    faster = cell(COMPILED, 0.8e-3, interval=around(0.8e-3))
    wrong = cell(TUNED, 0.1e-3, interval=around(0.1e-3), status="wrong")
    same = cell("onnxsim", None, status="unchanged")
    crashed = cell(EAGER, None, status="failed", detail="SIGSEGV: boom")
    cells = {c.key: c for c in (ours, faster, wrong, same, crashed, cell(BEST, 2e-3, over_ours=2.0))}
    lines = gpu_table.table(cells).splitlines()
    assert len(lines) == 3
    assert "0.80!" in lines[1]
    assert "0.10 wrong" in lines[1]
    assert "same" in lines[1]
    assert gpu_table.lost(cells) == ["bert_base fp16 b1: slower than torch.compile"]
    assert any("SIGSEGV" in line for line in gpu_table.troubles(cells))
    best = gpu_table.compiled(cells, PLACE)
    assert best is not None
    assert best.value == pytest.approx(0.8)
    unchanged = gpu_table.best_peer(cells, PLACE)
    assert unchanged is not None
    assert unchanged.value == 2.0, "a graph that came back runs as the original does"
    assert gpu_table.means(cells, [PLACE])[BEST] == (pytest.approx(2.0), 1)
