"""Jobs of gpu.py, each a few processes with limits; what comes of them are cells, also where they fail."""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks import gpu_peers, slots, subjects
from benchmarks.commandline import SUPEROPT, TIMED_OUT, Done, run
from benchmarks.gpu_cells import BEST, CORE, DEFAULT, HAND, OURS, PEERS, TUNED, Cell, Made, Place
from benchmarks.gpu_models import Files, files_of
from benchmarks.gpu_plan import NETWORKS, Job
from benchmarks.gpu_race import Race, beside_ours, interval_of
from benchmarks.gpu_ratios import composed
from benchmarks.gpu_room import Room
from benchmarks.gpu_steps import OutOfTime, StepFailed
from benchmarks.records import Ratio
from benchmarks.waiting import Waiting
from superopt.report import Report
from superopt.search.optimize import DEPLOY

WORKER = Path(__file__).with_name("gpu_worker.py")
MAKING, PATIENCE, COMPILING, TUNING = 200.0, 120.0, 240.0, 420.0
"""Seconds after which a step is given up."""
BEHIND_OPTIMIZE = 420.0  # of which sessions of convolutional networks take most, to open

Entrant: TypeAlias = "tuple[str, str, Mapping[str, str]]"
"""Name, model, session options."""


Ahead: TypeAlias = "Field | gpu_peers.ByPeers | Waiting"
"""Who runs, or what peers made, each with the race that waits; or a process in which torch is ready."""
Optimized: TypeAlias = "tuple[Path, Made | None, Mapping[str, str], Mapping[str, str] | None, str]"
"""superopt's model, what it did, the options it found for it and for the original; or why there is nothing."""


@dataclass(frozen=True)
class Field:
    """Who runs for a network, and under which options; their race, where it waits to be timed."""

    optimized: Optimized
    best: Mapping[str, str]
    plain: bool  # no options were found beyond those of a default session
    entrants: Sequence[Entrant]
    waiting: Waiting | None = None


@dataclass
class Workplace:
    work: Path
    target: str
    budget: float
    timing: float
    code: str
    until: float  # time.monotonic()
    peer_site: Path | None = None
    extra: tuple[str, ...] = ()  # further words for `superopt optimize`
    beside: int = 1
    """Jobs of superopt at a time."""
    others: int = 1
    """Jobs of others beside them. Those that run on the device wait for their turn, which takes so much longer."""
    best: dict[Place, Mapping[str, str]] = field(default_factory=dict[Place, Mapping[str, str]])
    """Options that were found for originals."""
    reserved: float = 0.0
    """Seconds at the end that are kept for what must be timed alone: what is at work when they grow ends earlier."""
    _making: dict[Place, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    _ahead: dict[Job, tuple[Ahead, float]] = field(default_factory=dict[Job, "tuple[Ahead, float]"])
    """What was done ahead of a race, and how long that took."""
    _failed: dict[Job, StepFailed] = field(default_factory=dict[Job, StepFailed])
    room: Room = field(default_factory=lambda: Room(WORKER))
    _steps: dict[Place, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def at_once(self) -> int:
        return self.beside + self.others if self.beside > 1 else 1

    @property
    def turn(self) -> str:
        """The file whose lock says whose turn it is; none where a job is alone."""
        return str(self.work / "turn") if self.beside > 1 else ""

    def left(self) -> float:
        return self.until - self.reserved - time.monotonic()

    def work_ahead(self, job: Job) -> None:
        """The longest part of a job, which may be done beside others; its race waits until it can be run alone."""
        if is_torch(job) and job.model not in NETWORKS:
            return  # nothing is to be done
        started = time.monotonic()
        try:
            self.made(job.place)
            found = self._done_ahead(job)
        except StepFailed as error:
            self._failed[job] = error
            return
        self._ahead[job] = found, time.monotonic() - started

    def _done_ahead(self, job: Job) -> Ahead:
        if job.methods == CORE:
            found = self._field(job)
            return replace(found, waiting=self.open_ahead(job, found.entrants))
        return gpu_peers.made_ahead(self, job) if job.methods == PEERS else self._compiled(job)

    def steps_of(self, place: Place) -> str:
        """What was done for a place since this was asked last, with the seconds it took."""
        return ", ".join(self._steps.pop(place, ()))

    def is_ahead(self, job: Job) -> bool:
        return job in self._ahead

    def has_failed(self, job: Job) -> bool:
        return job in self._failed

    def has_been_slow(self, job: Job) -> bool:
        """Beside others, which is no reason why it should be alone."""
        return job in self._failed and self._failed[job].status == "timed out"

    def forget(self, job: Job) -> None:
        """How it failed."""
        self._failed.pop(job, None)

    def best_beyond(self, job: Job) -> dict[str, str]:
        """What the best options for the original have that a default session does not."""
        return beyond(self.best.get(job.place, {}))

    def cells(self, job: Job) -> list[Cell]:
        """What the job finds; it raises `OutOfTime` and nothing else."""
        ahead, took = self._ahead.get(job, (None, 0.0))
        started = time.monotonic() - took
        try:
            if job in self._failed:
                raise self._failed[job]
            self.made(job.place)
            found = self._found(job, ahead)
        except StepFailed as error:
            found = [self.cell(job, method, status=error.status, detail=str(error)) for method in job.methods]
        seconds = (time.monotonic() - started) / len(found)
        return [cell.model_copy(update={"seconds": round(seconds, 1)}) for cell in found]

    def _found(self, job: Job, ahead: Ahead | None) -> list[Cell]:
        if job.methods == CORE:
            return self._core(job, ahead if isinstance(ahead, Field) else self._field(job))
        if job.methods == PEERS:
            made = ahead if isinstance(ahead, gpu_peers.ByPeers) else gpu_peers.made_by_all(self, job)
            return gpu_peers.cells_of(self, job, made, self.best_beyond(job))
        (method,) = job.methods
        if method == HAND:
            return [self._hand(job)]
        return [self._torch(job, method, ahead if isinstance(ahead, Waiting) else None)]

    def cell(self, job: Job, method: str, **fields: Any) -> Cell:
        code = self.code if method in CORE else ""
        return Cell(model=job.model, dtype=job.dtype, batch=job.batch, method=method, code=code, **fields)

    def made(self, place: Place) -> Files:
        files = files_of(self.work, place)
        with self._making[place]:
            if not files.reference.exists():
                self.step("make", place, MAKING, further=str(self.peer_site or ""))
        return files

    def step(self, name: str, place: Place, limit: float, **task: Any) -> dict[str, Any]:
        """One process of the worker."""
        with tempfile.TemporaryDirectory() as folder:
            asked, answer = Path(folder) / "task.json", Path(folder) / "answer.json"
            asked.write_text(json.dumps({"work": str(self.work), "place": place, "target": self.target, **task}))
            done = self.run((sys.executable, WORKER, name, asked, answer), limit, place, name)
            if done.returncode or not answer.exists():
                raise StepFailed(done)
            return json.loads(answer.read_text())

    def run(
        self, command: Sequence[str | Path], limit: float, place: Place, name: str, log: Path | None = None
    ) -> Done:
        limit *= self.at_once
        if self.left() <= 0:
            raise OutOfTime
        started = time.monotonic()
        done = run((*slots.pinned(), *command), lambda: min(limit - (time.monotonic() - started), self.left()), log)
        took = time.monotonic() - started
        self._steps[place].append(f"{name} {took:.0f} s")
        if done.returncode == TIMED_OUT and self.left() < limit - took:
            raise OutOfTime
        return done

    # ------------------------------------------------------------------ superopt, and onnxruntime alone

    def _core(self, job: Job, field: Field) -> list[Cell]:
        _, made, options, _, trouble = field.optimized
        best, plain = field.best, field.plain
        found = self.raced(job, field.entrants, field.waiting)
        default = self.told(job, DEFAULT, found, {})
        other = default.model_copy(update={"method": BEST}) if plain else self.told(job, BEST, found, best)
        if made is None:
            return [default, other, self.cell(job, OURS, status="failed", detail=trouble)]
        if made.returned == "optimized":
            mine, yardstick = self.told(job, OURS, found, options), OURS
        else:
            mine, yardstick = other.model_copy(update={"method": OURS}), DEFAULT if plain else BEST
        names = {DEFAULT: DEFAULT, BEST: DEFAULT if plain else BEST, OURS: yardstick}
        cells = [beside_ours(c, found, names[c.method], yardstick) for c in (default, other, mine)]
        return [*cells[:2], cells[2].model_copy(update={"made": made})]

    def _field(self, job: Job) -> Field:
        files = files_of(self.work, job.place)
        optimized = ours, made, options, original, _ = self._optimized(job, files)
        if made is not None and made.returned == "original":
            best = options  # the same search, on the same graph
        elif original is not None:
            best = original  # superopt's own rival
        else:
            seconds = DEPLOY[self.target] * self.budget
            limit = PATIENCE + 10 * seconds
            best = self.step("options", job.place, limit, seconds=seconds, turn=self.turn)["options"]
            if made is not None and not beyond(best):
                best = options  # sessions that open slowly leave no time for a search: at least those of our result
        self.best[job.place] = best
        plain = self.target == "cuda" and not beyond(best)  # nothing was found: a default session, however it is called
        entrants: list[Entrant] = [(DEFAULT, str(files.model), {})]
        entrants = entrants if plain else [(BEST, str(files.model), best), *entrants]
        if made is not None and made.returned == "optimized":
            entrants.insert(0, (OURS, str(ours), options))
        return Field(optimized, best, plain, entrants)

    def open_ahead(self, job: Job, entrants: Sequence[Entrant]) -> Waiting | None:
        """Their race, waiting; none where opening them takes the process down, which the race itself will tell."""
        try:
            return self.prepared("race", job, PATIENCE + 10 * self.timing, entrants=entrants)
        except StepFailed:
            return None

    def prepared(self, step: str, job: Job, limit: float, **task: Any) -> Waiting:
        """A step that has come to its gate."""
        started = time.monotonic()
        task |= {"work": str(self.work), "place": job.place, "target": self.target}
        task |= {"seconds": self.timing, "turn": self.turn}
        folder = files_of(self.work, job.place).folder / f"waiting {job.kind}"
        try:
            return self.room.prepared(step, task, folder, limit * self.at_once, self.left)
        finally:
            self._steps[job.place].append(f"{step} {time.monotonic() - started:.0f} s")

    def raced(self, job: Job, entrants: Sequence[Entrant], waiting: Waiting | None = None) -> Race:
        """Without the first, should it take the others down with it."""
        try:
            return self.race(job, entrants, waiting)
        except StepFailed as error:
            if len(entrants) < 3:
                raise
            found = self.race(job, entrants[1:])
            return Race({**found.errors, entrants[0][0]: str(error)}, found.first, found.comparison)

    def race(self, job: Job, entrants: Sequence[Entrant], waiting: Waiting | None = None) -> Race:
        limit = PATIENCE + 10 * self.timing
        if waiting is not None:
            return Race.of(self.room.finished(waiting, limit, self.left()))
        task = {"seconds": self.timing, "entrants": entrants, "turn": self.turn}
        return Race.of(self.step("race", job.place, limit, **task))

    def told(self, job: Job, method: str, found: Race, options: Mapping[str, str]) -> Cell:
        fields = found.fields(method, job.dtype)
        own, default = found.over_first(method), found.over_first(DEFAULT)
        ratio = composed(own, default.inverse()) if own and default else None
        if method == DEFAULT:
            ratio = Ratio(value=1.0, low=1.0, high=1.0)
        named = {"over_default": ratio.value, "over_default_interval": interval_of(ratio)} if ratio else {}
        best = found.over_first(BEST) if method not in CORE else None
        if own and best:
            ratio = composed(own, best.inverse())
            named |= {"over_best": ratio.value, "over_best_interval": interval_of(ratio)}
        return self.cell(job, method, options=beyond(options), **fields, **(named if fields.get("median") else {}))

    def _optimized(self, job: Job, files: Files) -> Optimized:
        ours, report = files.folder / "superopt.onnx", files.folder / "superopt.json"
        for path in (ours, report):
            path.unlink(missing_ok=True)
        limit = 6 * self.budget + BEHIND_OPTIMIZE
        command = (
            *SUPEROPT, "optimize", files.model, "-o", ours, "--report", report, "--target", self.target,
            "--budget", str(self.budget), *subjects.arguments(files.subject(job.model), files.folder), *self.extra,
            *(("--turn", self.turn) if self.turn else ()),
        )  # fmt: skip
        done = self.run(command, limit, job.place, "optimize", files.folder / "superopt.log")
        if not report.exists():
            return ours, None, {}, None, done.problem
        found = Report.model_validate_json(report.read_text())
        self._steps[job.place] += [
            f"  {stage} {seconds:.0f} s" for stage, seconds in found.stages.items() if seconds > 1
        ]
        if found.returned == "optimized" and not ours.exists():
            return ours, None, {}, None, "the report says optimized, and there is no model"
        deployment = found.deployment
        original = deployment.original if deployment else None
        return ours, _made(found), deployment.options if deployment else {}, original, ""

    # ------------------------------------------------------------------ others

    def _hand(self, job: Job) -> Cell:
        """Its time alone is compared with superopt's: both are steadier than the default session between them."""
        hand = files_of(self.work, job.place).hand
        if not hand.exists():
            return self.cell(job, HAND, status="does not apply", detail="nobody merged this one by hand")
        return self._variant(job, HAND, hand).model_copy(update={"over_default": None, "over_default_interval": None})

    def _variant(self, job: Job, method: str, made: Path) -> Cell:
        """Another form of the network, under the default options or the original's best, whichever is faster."""
        files = files_of(self.work, job.place)
        plain, tuned = method, f"{method} with options"
        entrants: list[Entrant] = [(DEFAULT, str(files.model), {}), (plain, str(made), {})]
        best = self.best.get(job.place, {})
        if beyond(best):
            entrants += [(tuned, str(made), best), (BEST, str(files.model), best)]
        found = self.raced(job, entrants)
        fastest = min((plain, tuned), key=lambda name: found.fields(name, job.dtype).get("median") or float("inf"))
        cell = self.told(job, fastest, found, best if fastest == tuned else {})
        return cell.model_copy(update={"method": method, "code": ""})

    def _torch(self, job: Job, method: str, ahead: Waiting | None) -> Cell:
        if job.model not in NETWORKS:
            return self.cell(job, method, status="does not apply", detail="there is no torch form of this model")
        limit = (TUNING if method == TUNED else COMPILING) + 2 * self.timing
        if ahead is not None:
            answer = self.room.finished(ahead, limit, self.left())
        else:
            answer = self.step("torch", job.place, limit, seconds=self.timing, method=method, turn=self.turn)
        fields = Race.of(answer).fields(method, job.dtype)
        detail = fields["detail"] or f"{answer['ready']:.0f} s until its first answer"
        return self.cell(job, method, **{**fields, "detail": detail})

    def _compiled(self, job: Job) -> Waiting:
        (method,) = job.methods
        return self.prepared("torch", job, TUNING if method == TUNED else COMPILING, method=method)


def is_torch(job: Job) -> bool:
    return job.methods not in (CORE, PEERS, (HAND,))


def _made(report: Report) -> Made:
    return Made(
        returned=report.returned,
        verdict=report.verdict,
        check=f"{report.check.status} ({report.check.runs} runs)",
        rules=dict(Counter(rewrite.name for rewrite in report.rewrites).most_common()),
        nodes_before=report.before.nodes,
        nodes_after=report.after.nodes,
    )


USUAL = {"execution_provider", "intra_op_num_threads", "session.intra_op.allow_spinning"}


def beyond(options: Mapping[str, str]) -> dict[str, str]:
    """What of the options a plain session does not have."""
    plain = (("graph_optimization_level", "ORT_ENABLE_ALL"), ("use_deterministic_compute", "1"))
    return {k: v for k, v in options.items() if k not in USUAL and (k, v) not in plain}
