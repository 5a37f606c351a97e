"""The watched child process: events arrive, limits hold, death is told, nothing is left running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest

from superopt.engine import watch
from superopt.engine.interrupts import held_back
from superopt.engine.job import AnyEvent, CalibrateJob, CheckJob, Done, Failed, Known, Offer, OptimizeJob, Stage
from superopt.engine.watch import Limits, Watched, default_memory_limit, run_job
from superopt.errors import BadModel, LimitHit, WorkerDied
from superopt.options import Options
from superopt.report import Environment, ModelFacts

pytestmark = pytest.mark.unit

JOB = CheckJob(original=Path("a.onnx"), candidate=Path("b.onnx"), options=Options().as_json())
ROOMY = Limits(seconds=600.0, memory_bytes=1 << 40)
FACTS = ModelFacts(
    path="a.onnx", sha256="0", file_bytes=1, ir_version=8, opsets={"": 17}, nodes=0, operators={}, parameters=0
)
PLACE = Environment(
    superopt="0", python="3", onnx="1", onnxruntime="1", target="cpu", device="d", driver="", threads=1, platform="p"
)


class Played:
    """Runs a short script where the worker would run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
        self.stages: list[Stage] = []
        self.watched = Watched()
        self.children: list[subprocess.Popen[bytes]] = []

        def start(noise: IO[str], careful: bool) -> subprocess.Popen[bytes]:
            code = f"import sys, os, time, signal\nsys.stdin.readline()\ncareful = {careful}\n{script}"
            child = subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=noise, start_new_session=True,
            )  # fmt: skip
            self.children.append(child)
            return child

        monkeypatch.setattr(watch, "_start", start)

    def run(self, limits: Limits = ROOMY) -> Done:
        try:
            return run_job(JOB, limits, self.stages.append, self.watched)
        finally:
            assert self.children
            assert all(c.poll() is not None for c in self.children)


def say(*events: AnyEvent) -> str:
    return "".join(f"print({e.model_dump_json()!r}, flush=True)\n" for e in events)


def test_events_arrive_in_order_and_the_result_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Known(facts=FACTS, external=["w"], environment=PLACE)
    stages = [Stage(stage="loading"), Stage(stage="checking", detail="ünï [b]")]
    played = Played(monkeypatch, say(*stages, known, Done(report={"a": 1}, data_files=["w"])))
    done = played.run()
    assert (done.report, done.data_files) == ({"a": 1}, ["w"])
    assert played.stages == stages
    assert played.watched.known == known
    assert played.watched.stage == "checking"


def test_a_long_event_may_arrive_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Done(report={"a": "x"}).model_dump_json()
    script = f"t = {whole!r}.replace('x', 'x' * 300000)\nfor i in (t[:9], t[9:200000], t[200000:] + chr(10)):\n"
    played = Played(monkeypatch, script + "    sys.stdout.write(i); sys.stdout.flush(); time.sleep(0.05)")
    assert len(played.run().report["a"]) == 300_000


def test_an_error_of_the_tree_crosses_the_border(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadModel, match=r"^m\.onnx: is empty$"):
        Played(monkeypatch, say(Failed(error="BadModel", message="m.onnx: is empty"))).run()


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("sys.exit(7)", "ended with exit code 7 while timing"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "was killed by SIGSEGV while timing"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "was killed by SIGKILL while timing"),
        ("raise ValueError('in a pass')", "its last words: ValueError: in a pass"),
        ("pass", "ended with exit code 0 while timing"),
    ],
)
def test_death_is_told_with_stage_and_last_words(monkeypatch: pytest.MonkeyPatch, end: str, told: str) -> None:
    with pytest.raises(WorkerDied) as caught:
        Played(monkeypatch, say(Stage(stage="timing")) + end).run()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


CRASH = "os.kill(os.getpid(), signal.SIGSEGV)\n"


def test_what_crashes_is_begun_again_by_one_that_is_careful(monkeypatch: pytest.MonkeyPatch) -> None:
    first = say(Stage(stage="timing", waited=2.0), Offer()) + CRASH
    again = say(Stage(stage="checking", waited=1.0), Done(report={"a": 1}))
    played = Played(monkeypatch, f"exec({again!r} if careful else {first!r})")
    assert played.run().report == {"a": 1}
    assert [stage.stage for stage in played.stages] == ["timing", "starting again", "checking"]
    assert [stage.waited for stage in played.stages] == [2.0, 2.0, 3.0]
    assert played.stages[1].detail == "after a crash while timing"
    assert played.watched.crash == "the working process was killed by SIGSEGV while timing"
    assert played.watched.waited == 3.0
    assert played.watched.offer is None


@pytest.mark.parametrize(
    ("script", "attempts"),
    [
        (say(Stage(stage="timing")) + CRASH, 2),
        (CRASH, 1),  # it had not begun
        (say(Stage(stage="timing")) + "os.kill(os.getpid(), signal.SIGKILL)", 1),  # somebody else did that
        (say(Stage(stage="timing")) + "sys.exit(7)", 1),
    ],
)
def test_a_job_has_two_attempts_and_only_after_a_crash(
    monkeypatch: pytest.MonkeyPatch, script: str, attempts: int
) -> None:
    played = Played(monkeypatch, script)
    with pytest.raises(WorkerDied):
        played.run()
    assert len(played.children) == attempts


def test_who_was_asked_to_end_has_no_second_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, say(Stage(stage="searching")) + CRASH)
    played.watched.asked = True
    with pytest.raises(WorkerDied):
        played.run()
    assert len(played.children) == 1


def test_calibrating_again_takes_what_is_left_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    first = say(Stage(stage="calibrating")) + f"time.sleep(0.3)\n{CRASH}"
    played = Played(monkeypatch, f"exec({say(Done(report={}))!r} if careful else {first!r})")
    begun: list[float] = []
    attempt = watch._attempt  # pyright: ignore[reportPrivateUsage]

    def noted(job: CalibrateJob, *rest: Any, **more: Any) -> Done:
        begun.append(job.seconds)
        return attempt(job, *rest, **more)

    monkeypatch.setattr(watch, "_attempt", noted)
    job = CalibrateJob(models=[], seconds=100.0, options=Options().as_json())
    assert run_job(job, ROOMY, played.stages.append, played.watched) == Done(report={})
    assert begun[0] == 100.0
    assert 60.0 < begun[1] < 100.0


def test_both_attempts_have_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, say(Stage(stage="timing")) + f"time.sleep(1.5)\n{CRASH}")
    with pytest.raises(LimitHit, match="more than 2 s, while timing"):
        played.run(Limits(2.0, 1 << 40))
    assert len(played.children) == 2


def test_the_limit_on_time_ends_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, say(Stage(stage="rewriting")) + "time.sleep(600)")
    with pytest.raises(LimitHit, match="more than 1 s, while rewriting"):
        played.run(Limits(1.0, 1 << 40))


def test_the_limit_on_memory_ends_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(monkeypatch, say(Stage(stage="checking")) + "b = bytearray(300 << 20)\ntime.sleep(600)")
    with pytest.raises(LimitHit, match=r"held \d+ MiB of memory while checking; the limit is 200 MiB"):
        played.run(Limits(60.0, 200 << 20))
    assert played.watched.largest > 200 << 20


def test_an_interrupt_ends_the_child_and_what_it_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = "import subprocess\np = subprocess.Popen(['sleep', '600'])\n"
    script += f"open({str(tmp_path / 'pid')!r}, 'w').write(str(p.pid))\n" + say(Stage(stage="x")) + "time.sleep(600)"
    played = Played(monkeypatch, script)

    def interrupt(stage: Stage) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(JOB, ROOMY, interrupt, played.watched)
    assert played.children[0].poll() == -signal.SIGKILL
    assert is_gone(int((tmp_path / "pid").read_text()))


LISTENING = (
    "asked = []\nsignal.signal(signal.SIGINT, lambda *_: asked.append(1))\n"
    "def wait():\n    while not asked: time.sleep(0.01)\n"
)


def pressing(*stages: str) -> Callable[[Stage], None]:
    """Ctrl-C each time that one of the stages is told."""
    return lambda stage: signal.raise_signal(signal.SIGINT) if stage.stage in stages else None


def test_a_patient_caller_asks_first(monkeypatch: pytest.MonkeyPatch, usual_interrupts: None) -> None:
    script = LISTENING + say(Offer(), Stage(stage="searching")) + "wait()\n" + say(Done(report={"a": 1}))
    played = Played(monkeypatch, script)
    assert run_job(JOB, ROOMY, pressing("searching"), played.watched, patient=True).report == {"a": 1}
    assert played.watched.asked
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize(
    ("script", "stages", "patient"),
    [
        (say(Stage(stage="searching")), ["searching"], True),  # nothing is offered
        (say(Offer(), Stage(stage="searching")), ["searching", "ending"], True),  # a second time
        (say(Offer(), Stage(stage="searching")), ["searching"], False),
    ],
)
def test_otherwise_an_interrupt_ends_it(
    monkeypatch: pytest.MonkeyPatch, usual_interrupts: None, script: str, stages: list[str], patient: bool
) -> None:
    played = Played(monkeypatch, LISTENING + script + "time.sleep(600)")
    with pytest.raises(KeyboardInterrupt):
        run_job(JOB, ROOMY, pressing(*stages), played.watched, patient=patient)
    assert played.children[0].poll() == -signal.SIGKILL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_steps_that_belong_together_are_not_interrupted(usual_interrupts: None) -> None:
    done: list[int] = []

    def move() -> None:
        with held_back():
            done.append(1)
            signal.raise_signal(signal.SIGINT)
            done.append(2)

    with pytest.raises(KeyboardInterrupt):
        move()
    assert done == [1, 2]


@pytest.fixture
def usual_interrupts() -> Generator[None]:
    """Whoever runs the tests in the background makes them ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def is_gone(pid: int) -> bool:
    for _ in range(12_000):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_the_worker_dies_with_its_parent(tmp_path: Path) -> None:
    """The parent starts the real worker, gives it no job, tells its id and is killed."""
    code = (
        "import tempfile, time\nfrom superopt.engine import watch\n"
        "c = watch._start(tempfile.TemporaryFile('w+'), False)\nprint(c.pid, flush=True)\ntime.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        time.sleep(0.2)
        os.kill(parent.pid, signal.SIGKILL)
    assert is_gone(pid)


def test_the_real_worker_refuses_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "x.onnx").write_text("text")
    job = OptimizeJob(
        model=tmp_path / "x.onnx", folder=tmp_path / "s", name="o.onnx", data_name="d", share_data=False,
        options=Options(target="cpu").as_json(),
    )  # fmt: skip
    stages: list[Stage] = []
    with pytest.raises(BadModel, match="not an ONNX model"):
        run_job(job, ROOMY, stages.append, Watched())
    assert [s.stage for s in stages] == ["loading"]


def test_the_default_limit_leaves_room() -> None:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < default_memory_limit() < total


def test_the_default_limit_sees_a_container(tmp_path: Path) -> None:
    allowed = watch._allowed  # pyright: ignore[reportPrivateUsage]
    assert allowed(tmp_path) == watch.UNLIMITED
    (tmp_path / "memory.max").write_text("max\n")
    assert allowed(tmp_path) == watch.UNLIMITED
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert allowed(tmp_path) == 600


@pytest.mark.parametrize("waited", [0.0, 1000.0])
def test_waiting_for_the_device_counts_against_no_limit(monkeypatch: pytest.MonkeyPatch, waited: float) -> None:
    """A quarter of an hour passes once the child has told how long it waited."""
    played = Played(monkeypatch, say(Stage(stage="timing", waited=waited)) + "time.sleep(1.0)\n" + say(Done(report={})))
    clock = SimpleNamespace(monotonic=lambda: 900.0 if played.stages else 0.0)
    monkeypatch.setattr(watch, "time", clock)
    if waited:
        assert played.run() == Done(report={})
    else:
        with pytest.raises(LimitHit, match="more than 600 s, while timing"):
            played.run()
    assert played.watched.waited == waited


@pytest.mark.parametrize(("told", "expected"), [(None, "1"), ("3", "3")])
def test_numpy_has_one_thread_in_the_child_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, told: str | None, expected: str
) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    if told is not None:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", told)
    given: list[dict[str, str]] = []

    def start(*_: object, env: dict[str, str], **__: object) -> None:
        given.append(env)
        raise OSError("far enough")

    monkeypatch.setattr(subprocess, "Popen", start)
    with pytest.raises(OSError, match="far enough"):
        run_job(JOB, ROOMY, lambda stage: None, Watched())
    assert given == [{**os.environ, "OPENBLAS_NUM_THREADS": expected}]
