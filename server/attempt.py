"""One claim being worked on: the model out of the store, a process for the job, its result into the store."""

from __future__ import annotations

import logging
import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy.exc import SQLAlchemyError

from server.blobs import Blobs
from server.children import plain_environment, stop
from server.claims import Claim, Claims, Outcome
from server.leftovers import MARK, kill_marked
from server.outcome import problem_of, summary_of
from server.protocol import TOLD, Delivery, Refusal, Work
from server.records import GRAPHS, MODEL, REPORT, File
from server.spool import FULL, hashed
from server.stages import Reached
from server.store import Damaged
from superopt.engine.job import Stage

POLL_SECONDS = 0.2
AWAY_SECONDS = 1.0
"""Between two looks whether the store is back."""
TELL_SECONDS = 1.0
"""How often the detail of one stage is written down."""
STOP_SECONDS = 0.7
SPARE_SECONDS = 300.0
"""Beyond the job's own limit on time: its process is stuck."""
SPARE_BYTES = 1 << 30
UPLOAD, OUT, TEMPORARY = "upload", "out", "tmp"
T = TypeVar("T")
log = logging.getLogger("superopt.worker")


@dataclass(frozen=True)
class Bench:
    """Where a worker works, and with what."""

    folder: Path
    device: str
    mark: str
    command: Sequence[str]
    claims: Claims
    blobs: Blobs
    turn: Path | None = None
    """File whose lock says whose turn it is on the device, where several work for it."""


class Stopped(Exception):
    """The work was ended from outside: the job is somebody else's now, or the worker shuts down."""


class Died(Exception):
    """The job's process ended without an answer."""


@dataclass
class Attempt:
    bench: Bench
    claim: Claim
    is_lost: Callable[[], bool]
    must_stop: Callable[[], bool]
    waited: float = 0.0
    """Seconds that the job waited for its turn on the device: they count against none of its limits."""
    _stages: dict[str, float] = field(default_factory=dict[str, float])
    _stage: str = "starting"
    _since: float = field(default_factory=time.monotonic)
    _told: float = 0.0
    _reached: Reached = field(default_factory=Reached)
    _is_news: bool = False

    def run(self) -> None:
        """Work until the job has ended in the database, or raise `Stopped` or `Died`."""
        folder = self.bench.folder / f"{self.claim.job.id}-{self.claim.fence}"
        try:
            self._lay_out(folder)
            answer = self._follow(folder)
            if isinstance(answer, Refusal):
                problem = problem_of(answer.error, _scrubbed(answer.message, folder))
                told = self._insist(lambda: self.bench.claims.fail(self.claim, problem))
            else:
                outcome = self._outcome(answer, folder)
                told = self._insist(lambda: self.bench.claims.complete(self.claim, outcome))
            if not told:
                raise Stopped
        finally:
            kill_marked(self._mark)
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def _mark(self) -> str:
        return f"{self.bench.mark}/{self.claim.job.id}-{self.claim.fence}"

    def _lay_out(self, folder: Path) -> None:
        for name in (UPLOAD, OUT, TEMPORARY):
            (folder / name).mkdir(parents=True)
        for file in self.claim.files:
            target = folder / UPLOAD / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            self._insist(lambda digest=file.digest, target=target: self._fetch(digest, target))

    def _fetch(self, digest: str, target: Path) -> None:
        target.unlink(missing_ok=True)  # what came before the store went away
        self.bench.blobs.fetch(digest, target, self._look)

    def _follow(self, folder: Path) -> Delivery | Refusal:
        size = sum(f.size for f in self.claim.files)
        options = dict(self.claim.job.options)
        work = Work(
            model=Path(UPLOAD, MODEL), out=Path(OUT, MODEL), options=options, turn=self.bench.turn,
            file_bytes=2 * size + SPARE_BYTES,
        )  # fmt: skip
        until = time.monotonic() + float(options["time_limit"]) + SPARE_SECONDS
        own = {MARK: self._mark, "TMPDIR": str(folder / TEMPORARY)}
        with open(folder / "stderr", "wb") as noise:
            child = subprocess.Popen(
                [*self.bench.command, str(os.getpid())], cwd=folder, env=plain_environment(self.bench.device, own),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=noise, start_new_session=True,
            )  # fmt: skip
            try:
                assert child.stdin is not None
                try:
                    child.stdin.write(work.model_dump_json().encode() + b"\n")
                    child.stdin.close()
                except BrokenPipeError:
                    raise Died(_last_words(folder)) from None
                for line in _lines(child, lambda: self._watch(until)):
                    told = TOLD.validate_json(line)
                    if not isinstance(told, Stage):
                        return told
                    self._tell(told)
            finally:
                stop(child, STOP_SECONDS)
        raise Died(_last_words(folder))

    def _look(self) -> None:
        if self.is_lost() or self.must_stop():
            raise Stopped

    def _watch(self, until: float) -> None:
        self._look()
        self._pass_on()
        if time.monotonic() > until + self.waited:
            raise Died("the process did not keep to its own limit on time")

    def _tell(self, stage: Stage) -> None:
        if stage.stage != self._stage:
            self._count(time.monotonic())
            self._stage, self._told = stage.stage, 0.0
        self.waited = stage.waited
        before, self._reached = self._reached, self._reached.after(stage)
        self._is_news = self._is_news or self._reached != before
        self._pass_on()

    def _pass_on(self) -> None:
        """What is new: a stage at once, what happens in it now and then."""
        now = time.monotonic()
        if not self._is_news or now - self._told < TELL_SECONDS:
            return
        self._told, self._is_news = now, False
        try:
            if not self.bench.claims.tell(self.claim, self._reached):
                raise Stopped
        except SQLAlchemyError as error:  # the work is worth more than the news of it
            log.warning("progress could not be told: %s", type(error).__name__)

    def _insist(self, call: Callable[[], T]) -> T:
        """What was worked for is not lost to a database or a store that is away for a while; only with the claim."""
        while True:
            try:
                return call()
            except SQLAlchemyError as error:
                log.warning("the database did not answer: %s", type(error).__name__)
                time.sleep(POLL_SECONDS)
            except (Damaged, OSError) as error:
                if not self._store_is_away(error):
                    raise
                log.warning("the store did not answer: %s", error)
                time.sleep(AWAY_SECONDS)
            self._look()

    def _store_is_away(self, error: Damaged | OSError) -> bool:
        """Or it works, and what went wrong is the job's own; or it is full, and waiting would not help."""
        if isinstance(error, OSError) and error.errno in FULL:
            return False
        try:
            self.bench.blobs.store.probe()
        except OSError as away:
            return away.errno not in FULL
        return False

    def _count(self, now: float) -> None:
        self._stages[self._stage] = self._stages.get(self._stage, 0.0) + now - self._since
        self._since = now

    def _outcome(self, delivery: Delivery, folder: Path) -> Outcome:
        self._count(time.monotonic())
        report, summary = summary_of(delivery)
        (folder / REPORT).write_text(_scrubbed(report, folder), encoding="utf-8")
        files = [self._keep(name, folder / name) for name in (REPORT, GRAPHS) if (folder / name).exists()]
        for name in (MODEL, *delivery.data_files):
            files.append(self._keep(name, folder / OUT / name))
        return Outcome(tuple(files), _without(summary, folder), delivery.stopped is None, self._stages)

    def _keep(self, name: str, path: Path) -> File:
        file = hashed(path, self._look)
        self._insist(lambda: self.bench.blobs.keep(file))
        return File(name, file.digest, file.size)


def _lines(child: subprocess.Popen[bytes], look: Callable[[], None]) -> Iterator[bytes]:
    """What the child says, line by line; `look` is called all the while."""
    assert child.stdout is not None
    os.set_blocking(child.stdout.fileno(), False)
    buffer = b""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            look()
            if not selector.select(POLL_SECONDS):
                continue
            chunk = child.stdout.read()
            if chunk == b"":
                return
            *lines, buffer = (buffer + (chunk or b"")).split(b"\n")
            yield from lines


def _scrubbed(text: str, folder: Path) -> str:
    """Where the job's files lay is nobody's business."""
    for prefix in (f"{folder.resolve()}/", f"{folder}/"):
        text = text.replace(prefix, "")
    return text.replace(f"{UPLOAD}/{MODEL}", MODEL).replace(f"{OUT}/{MODEL}", MODEL)


def _without(summary: dict[str, Any], folder: Path) -> dict[str, Any]:
    return {k: _scrubbed(v, folder) if isinstance(v, str) else v for k, v in summary.items()}


def _last_words(folder: Path) -> str:
    with open(folder / "stderr", "rb") as noise:
        noise.seek(max(0, noise.seek(0, os.SEEK_END) - 2000))
        lines = noise.read().decode("utf-8", "replace").strip().splitlines()
    return f"the job's process ended without an answer{f': {lines[-1][:300]}' if lines else ''}"
