"""Start a job's process, follow it, hold it to its limits, and say what happened if it dies."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import superopt.errors
from superopt.cost.memory import resident_bytes
from superopt.engine.interrupts import asking_first
from superopt.engine.job import CAREFUL, EVENT, AnyJob, CalibrateJob, Done, Failed, Known, Offer, OptimizeJob, Stage
from superopt.errors import LimitHit, SuperoptError, WorkerDied
from superopt.runtime.crash import CRASHES

POLL_SECONDS = 0.1
STARTING, AGAIN = "starting", "starting again"
UNLIMITED = 1 << 62
ALONE = {"OPENBLAS_NUM_THREADS": "1"}
"""For the child, unless the user says otherwise: numpy's threads spin while they wait for one another, so that beside
other work small equations take twenty times as long, and what is timed meanwhile is disturbed."""


@dataclass(frozen=True)
class Limits:
    seconds: float
    memory_bytes: int


@dataclass
class Watched:
    """What is known of a running job; it outlives the process."""

    stage: str = STARTING
    known: Known | None = None
    offer: Offer | None = None
    asked: bool = False
    """Whether it was asked to end with what it offers."""
    done: Done | None = None
    failed: Failed | None = None
    crash: str = ""
    """What became of the process before this one, which tries every model out elsewhere first."""
    largest: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    """Of these, for the device: they count against no limit."""
    waited_before: float = 0.0
    """Of these, by a process that crashed."""


def default_memory_limit() -> int:
    """Nine tenths of what the machine, or the container we are in, can give without swapping."""
    return min(_available(Path("/proc/meminfo")), _allowed(Path("/sys/fs/cgroup"))) * 9 // 10


def _available(meminfo: Path) -> int:
    with contextlib.suppress(OSError):
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return UNLIMITED


def _allowed(group: Path) -> int:
    """What is left of the control group's limit; a container has one where it was started with one."""
    with contextlib.suppress(OSError, ValueError):  # no such file, or `max`
        limit = int((group / "memory.max").read_text())
        return max(0, limit - int((group / "memory.current").read_text()))
    return UNLIMITED


def run_job(
    job: AnyJob, limits: Limits, tell: Callable[[Stage], None], watched: Watched, *, patient: bool = False
) -> Done:
    """Work in a child process. Raises what the child raised, `LimitHit` or `WorkerDied`; `watched` keeps what came.

    A child that crashes while it works with models has a second one after it, within the same limits, that tries each
    of them out in a process of its own: what onnxruntime does not survive is one model of many.

    Ctrl-C ends it. A `patient` caller waits for what the job offers by then: only a second one ends it at once.
    """
    try:
        return _attempt(job, limits, tell, watched, patient=patient, careful=False)
    except WorkerDied as died:
        if not died.crashed or watched.asked or watched.stage == STARTING:
            raise
        tell(Stage(stage=AGAIN, detail=f"after a crash while {watched.stage}", waited=watched.waited))
        watched.crash, watched.stage, watched.offer, watched.waited_before = str(died), STARTING, None, watched.waited
    return _attempt(_again(job, watched), limits, tell, watched, patient=patient, careful=True)


def _again(job: AnyJob, watched: Watched) -> AnyJob:
    """What is left of it to be done."""
    if isinstance(job, OptimizeJob):
        for staged in job.folder.iterdir():
            shutil.rmtree(staged)
    if isinstance(job, CalibrateJob):
        left = job.seconds - (watched.seconds - watched.waited)
        return job.model_copy(update={"seconds": max(0.0, left)})
    return job


def _attempt(
    job: AnyJob, limits: Limits, tell: Callable[[Stage], None], watched: Watched, *, patient: bool, careful: bool
) -> Done:
    with tempfile.TemporaryFile("w+") as noise:
        child = _start(noise, careful)
        try:
            assert child.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write(job.model_dump_json().encode() + b"\n")
                child.stdin.close()
            with asking_first(lambda: _ask(child, watched)) if patient else contextlib.nullcontext():
                _follow(child, limits, tell, watched)
        finally:
            _stop(child)
        if watched.failed is not None:
            raise _error(watched.failed)
        if watched.done is not None:
            return watched.done
        raise WorkerDied(_obituary(child.returncode, watched.stage, noise), crashed=-child.returncode in CRASHES)


def _start(noise: IO[str], careful: bool) -> subprocess.Popen[bytes]:
    """In a session of its own: Ctrl-C reaches the parent alone, which decides."""
    return subprocess.Popen(
        [sys.executable, "-m", "superopt.engine.worker", str(os.getpid()), *([CAREFUL] if careful else ())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=noise,
        start_new_session=True,
        env={**ALONE, **os.environ},
    )


def _ask(child: subprocess.Popen[bytes], watched: Watched) -> bool:
    """Ask the child to end with what it offers; False where it offers nothing, or was asked before."""
    if watched.offer is None or watched.asked:
        return False
    watched.asked = True
    child.send_signal(signal.SIGINT)
    return True


def _follow(child: subprocess.Popen[bytes], limits: Limits, tell: Callable[[Stage], None], watched: Watched) -> None:
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    selector = selectors.DefaultSelector()
    selector.register(child.stdout, selectors.EVENT_READ)
    started, buffer, asked = time.monotonic() - watched.seconds, b"", False
    while True:
        if watched.asked and not asked:
            asked = True
            tell(Stage(stage="ending", detail="with what was found so far; Ctrl-C again ends at once"))
        if selector.select(POLL_SECONDS):
            chunk = child.stdout.read()
            if chunk == b"":
                return
            *lines, buffer = (buffer + (chunk or b"")).split(b"\n")
            for line in lines:
                _receive(line, tell, watched)
        watched.largest = max(watched.largest, held := resident_bytes(child.pid) or 0)
        if held > limits.memory_bytes:
            allowed = limits.memory_bytes >> 20
            raise LimitHit(f"the job held {held >> 20} MiB of memory while {watched.stage}; the limit is {allowed} MiB")
        watched.seconds = time.monotonic() - started
        if watched.seconds - watched.waited > limits.seconds:
            raise LimitHit(f"the job ran for more than {limits.seconds:g} s, while {watched.stage}")


def _receive(line: bytes, tell: Callable[[Stage], None], watched: Watched) -> None:
    event = EVENT.validate_json(line)
    if isinstance(event, Stage):
        event = event.model_copy(update={"waited": watched.waited_before + event.waited})
        watched.stage, watched.waited = event.stage, event.waited
        tell(event)
    elif isinstance(event, Known):
        watched.known = event
    elif isinstance(event, Offer):
        watched.offer = event
    elif isinstance(event, Done):
        watched.done = event
    else:
        watched.failed = event


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if child.poll() is None:
            try:
                child.wait(timeout=0 if sys.exc_info()[0] else 5)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _error(failed: Failed) -> SuperoptError:
    kind = getattr(superopt.errors, failed.error, SuperoptError)
    error = SuperoptError.__new__(kind)
    error.args = (failed.message,)
    return error


def _obituary(code: int, stage: str, noise: IO[str]) -> str:
    if code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
    else:
        how = f"ended with exit code {code}"
    noise.seek(0)
    last = [line.strip() for line in noise.read()[-4000:].splitlines() if line.strip()]
    return f"the working process {how} while {stage}" + (f"; its last words: {last[-1][:300]}" if last else "")
