"""The other optimizers on one network: what each makes of it, and all of that in one interleaved run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import graphs
from benchmarks.gpu_cells import BEST, DEFAULT, PEERS, Cell
from benchmarks.gpu_models import files_of
from benchmarks.gpu_plan import Job
from benchmarks.gpu_steps import StepFailed
from benchmarks.peers import PEERS as WORKERS
from benchmarks.peers import WORKER as PEER_WORKER
from benchmarks.waiting import Waiting

if TYPE_CHECKING:
    from benchmarks.gpu_jobs import Entrant, Workplace

PATIENCE = 120.0
"""Seconds after which an optimizer is given up."""


@dataclass(frozen=True)
class ByPeers:
    """What the optimizers made: files by method; methods that made the same as an earlier one; and cells of those of
    which there is nothing to time; and the race of the files, where it waits to be timed."""

    files: Mapping[str, Path]
    same: Mapping[str, str]
    cells: Mapping[str, Cell]
    waiting: Waiting | None = None
    under: Mapping[str, str] = field(default_factory=dict[str, str])
    """The options that the waiting race has them open under."""


def made_ahead(place: Workplace, job: Job) -> ByPeers:
    """With the race, under the best options that are known."""
    made = made_by_all(place, job)
    if not made.files:
        return made
    under = place.best_beyond(job)
    return replace(made, waiting=place.open_ahead(job, _entrants(place, job, made.files, under)), under=under)


def made_by_all(place: Workplace, job: Job) -> ByPeers:
    """Nothing is timed here."""
    files: dict[str, Path] = {}
    same: dict[str, str] = {}
    cells: dict[str, Cell] = {}
    known: dict[str, str] = {}
    for method in job.methods:
        found = _made(place, job, method)
        if isinstance(found, Cell):
            cells[method] = found
            continue
        graph = graphs.facts(found).graph
        if graph in known:
            same[method] = known[graph]
        else:
            known[graph], files[method] = method, found
    return ByPeers(files, same, cells)


def _made(place: Workplace, job: Job, method: str) -> Path | Cell:
    files = files_of(place.work, job.place)
    subject = files.subject(job.model)
    worker = next(peer.worker for peer in WORKERS if peer.name == method)
    if worker == "transformers" and not subject.transformer:
        return place.cell(job, method, status="does not apply")
    made = files.folder / f"{method}.onnx"
    asked = {**subject.transformer, "use_gpu": place.target == "cuda"}  # on a CPU it widens what is in float16
    told = [json.dumps(asked)] if worker == "transformers" else []
    done = place.run((*_python(place), PEER_WORKER, worker, files.model, made, *told), PATIENCE, job.place, method)
    if done.returncode or not made.exists():
        return place.cell(job, method, status="failed", detail=done.problem)
    if graphs.facts(made).graph == graphs.facts(files.model).graph:
        return place.cell(job, method, status="unchanged")
    return made


def _python(place: Workplace) -> tuple[str, ...]:
    if place.peer_site is None:
        return (sys.executable,)
    path = os.pathsep.join(filter(None, (str(place.peer_site), os.environ.get("PYTHONPATH", ""))))
    return ("env", f"PYTHONPATH={path}", sys.executable)


def cells_of(place: Workplace, job: Job, made: ByPeers, best: Mapping[str, str]) -> list[Cell]:
    """All under the original's `best` options; those that do not run so, in a default session."""
    waiting = made.waiting
    if waiting is not None and made.under != best:  # found since, or found to be others
        place.room.dismiss(waiting)
        waiting = None
    cells = {**made.cells, **_timed(place, job, made.files, best, waiting)}
    failed = {m: made.files[m] for m in made.files if best and cells[m].status in ("failed", "timed out")}
    cells |= _timed(place, job, failed, {})
    cells |= {method: cells[other].model_copy(update={"method": method}) for method, other in made.same.items()}
    return [cells[method] for method in PEERS if method in job.methods]


def _timed(
    place: Workplace, job: Job, files: Mapping[str, Path], options: Mapping[str, str], waiting: Waiting | None = None
) -> dict[str, Cell]:
    if not files:
        return {}
    try:
        found = place.race(job, _entrants(place, job, files, options), waiting)
    except StepFailed as error:
        return _one_by_one(place, job, files, options, error)
    return {m: place.told(job, m, found, options) for m in files}


def _entrants(place: Workplace, job: Job, files: Mapping[str, Path], options: Mapping[str, str]) -> list[Entrant]:
    model = str(files_of(place.work, job.place).model)
    originals: list[Entrant] = [(DEFAULT, model, {}), *([(BEST, model, options)] if options else [])]
    return [*originals, *((method, str(file), options) for method, file in files.items())]


def _one_by_one(
    place: Workplace, job: Job, files: Mapping[str, Path], options: Mapping[str, str], error: StepFailed
) -> dict[str, Cell]:
    """Whoever takes the process down does so to nobody else's cost."""
    if len(files) == 1:
        return {method: place.cell(job, method, status=error.status, detail=str(error)) for method in files}
    return {k: cell for m, file in files.items() for k, cell in _timed(place, job, {m: file}, options).items()}
