"""Jobs, files and results as the rest of the service sees them: rows, frozen and typed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, Executable, select

from server.tables import job_files, jobs, result_files
from superopt.search.ending import Basis

State = Literal["queued", "running", "done", "failed", "canceled"]
ENDED: tuple[State, ...] = ("done", "failed", "canceled")
MODEL = "model.onnx"
"""The name that every model has inside the service, and that no data file may have."""
REPORT = "report.json"
GRAPHS = "graphs.json"
"""What the page draws; kept beside the result, not part of it."""


@dataclass(frozen=True)
class File:
    name: str
    digest: str
    size: int


@dataclass(frozen=True)
class Job:
    id: str
    tenant: str
    state: State
    request: str
    target: str
    options: Mapping[str, Any]
    created: float
    queued: float
    started: float | None
    ended: float | None
    stage: str
    detail: str
    progress: float
    speedup: float | None
    basis: Basis | None
    """Where the speed-up comes from."""
    result: str | None
    cached: bool
    error: Mapping[str, Any] | None
    gone: bool
    attempts: int
    fence: int
    worker: str | None
    lease: float | None
    last_event: int

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


def jobs_of(connection: Connection, query: Executable) -> list[Job]:
    return [Job(**row) for row in connection.execute(query).mappings()]


def job_by_id(connection: Connection, id: str) -> Job | None:
    found = jobs_of(connection, select(jobs).where(jobs.c.id == id))
    return found[0] if found else None


def files_of_job(connection: Connection, id: str) -> tuple[File, ...]:
    query = select(job_files.c.name, job_files.c.digest, job_files.c.size).where(job_files.c.job == id)
    return tuple(File(*row) for row in connection.execute(query.order_by(job_files.c.name)))


def files_of_result(connection: Connection, key: str) -> tuple[File, ...]:
    query = select(result_files.c.name, result_files.c.digest, result_files.c.size).where(result_files.c.result == key)
    return tuple(File(*row) for row in connection.execute(query.order_by(result_files.c.name)))


def request_digest(files: Iterable[File], options: Mapping[str, Any]) -> str:
    """The same for the same model, data files and options, whoever asks."""
    content = {"files": sorted((f.name, f.digest) for f in files), "options": dict(options)}
    return _digest(content)


def result_key(request: str, fingerprint: str) -> str:
    """The same for the same request on the same device with the same rules and versions."""
    return _digest([request, fingerprint])


def own_key(job: str) -> str:
    """Of a result that nobody else is to get: the job was stopped."""
    return _digest(["job", job])


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
