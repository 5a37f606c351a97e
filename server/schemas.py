"""The documents that clients get. Field names are an interface: they are added to, never renamed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from server.events import Event
from server.records import GRAPHS, MODEL, REPORT, File, Job, State
from superopt.search.ending import Basis

ID = "4f0c2a7de7a94d0f9f3c0f9b4f0f6a11"


class Document(BaseModel):
    model_config = ConfigDict(frozen=True)


class StoredFile(Document):
    name: str = Field(examples=["model.onnx"])
    bytes: int = Field(examples=[23421], ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    url: str | None = Field(default=None, description="where it can be fetched, if it can")


class ProblemDocument(Document):
    """RFC 9457. More fields may be there, each named in its own words."""

    model_config = ConfigDict(frozen=True, extra="allow")
    type: str = Field(examples=["about:blank"])
    title: str = Field(examples=["Unprocessable Content"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["the model is empty"])


class LogLine(Document):
    time: datetime
    stage: str = Field(examples=["timing"])
    detail: str = Field(examples=["explore, 3 of at most 20 s"])


class ResultDocument(Document):
    verdict: str = Field(description="one line for people", examples=["0 %: nothing to improve"])
    returned: Literal["optimized", "original"] = Field(description="what the model is that comes back")
    speedup: float | None = Field(description="of the returned model; 1 for the original", examples=[1.31])
    speedup_interval: dict[str, float] | None = Field(description="95 % confidence interval")
    nodes_before: int
    nodes_after: int
    bytes_before: int
    bytes_after: int
    seconds_before: float | None = Field(description="for one run")
    seconds_after: float | None
    rewrites: int
    device: str
    stopped: str | None = Field(description="why the work did not end by itself; the original came back then")
    files: list[StoredFile] = Field(description="model, report, and data files beside the model")


class JobDocument(Document):
    id: str = Field(examples=[ID], pattern="^[0-9a-f]{32}$")
    state: State
    created: datetime
    started: datetime | None
    ended: datetime | None
    expires: datetime | None = Field(description="from when on its files are no longer kept")
    stage: str = Field(description="what is being done", examples=["searching"])
    detail: str
    progress: float = Field(description="share of the way, not of the time", ge=0, le=1)
    speedup: float | None = Field(description="the best so far, when it is known; 1 where that is the original")
    basis: Basis | None = Field(
        description="where the speed-up comes from: `predicted` from regions, timed, and their predicted shares of the "
        "model, while it is searched; `measured` on whole models"
    )
    cached: bool = Field(description="answered with the result of an equal job")
    attempts: int = Field(description="workers that have begun it")
    options: dict[str, Any] = Field(description="every option, defaults included")
    files: list[StoredFile] = Field(description="what was uploaded")
    result: ResultDocument | None = Field(description="of a job that is done")
    error: ProblemDocument | None = Field(description="of a job that failed")
    log: list[LogLine] = Field(description="the latest stages, oldest first")
    links: dict[str, str] = Field(examples=[{"self": f"/v1/jobs/{ID}", "events": f"/v1/jobs/{ID}/events"}])


class JobList(Document):
    jobs: list[JobDocument] = Field(description="the newest first, without files and log")
    next: str | None = Field(description="where the next page is, if there is one")


class RuleDocument(Document):
    name: str = Field(examples=["conv-merge-shared-input"])
    doc: str
    state: Literal["proved", "stale", "unproved"] = Field(description="only proved rules are used")
    proof: str
    text: str | None = Field(default=None, description="the rule in full, when it is asked for alone")


class RuleList(Document):
    rules: list[RuleDocument]


class DeviceDocument(Document):
    worker: str
    device: str = Field(examples=["cpu"])
    name: str = Field(examples=["NVIDIA H200"])
    targets: list[str] = Field(description="values of the option `target` that it serves", examples=[["auto", "cpu"]])
    busy: bool
    facts: dict[str, Any] = Field(description="driver, versions, rules")


class DeviceList(Document):
    devices: list[DeviceDocument]


class Readiness(Document):
    ready: bool
    checks: dict[str, str] = Field(description="`ok`, or what is wrong", examples=[{"database": "ok", "store": "ok"}])


def job_document(
    job: Job,
    retention: float,
    *,
    files: tuple[File, ...] = (),
    result: tuple[File, ...] = (),
    summary: dict[str, Any] | None = None,
    events: list[Event] | None = None,
) -> JobDocument:
    here = f"/v1/jobs/{job.id}"
    links = {"self": here, "events": f"{here}/events"}
    if job.state == "done":
        links |= {"model": f"{here}/model", "report": f"{here}/report", "graphs": f"{here}/graphs"}
    return JobDocument(
        id=job.id,
        state=job.state,
        created=_time(job.created),
        started=_time_or_none(job.started),
        ended=_time_or_none(job.ended),
        expires=None if job.ended is None else _time(job.ended + retention),
        stage=job.stage,
        detail=job.detail,
        progress=job.progress,
        speedup=job.speedup,
        basis=job.basis,
        cached=job.cached,
        attempts=job.attempts,
        options=dict(job.options),
        files=[StoredFile(name=f.name, bytes=f.size, sha256=f.digest) for f in files],
        result=None
        if summary is None
        else ResultDocument(**summary, files=[_fetchable(here, f) for f in result if f.name != GRAPHS]),
        error=None if job.error is None else ProblemDocument.model_validate(job.error),
        log=[
            LogLine(time=_time(e.time), stage=e.data["stage"], detail=e.data["detail"])
            for e in events or ()
            if e.kind == "stage"
        ],
        links=links,
    )


def _fetchable(here: str, file: File) -> StoredFile:
    path = {MODEL: "model", REPORT: "report"}.get(file.name, f"data/{quote(file.name)}")
    return StoredFile(name=file.name, bytes=file.size, sha256=file.digest, url=f"{here}/{path}")


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _time_or_none(seconds: float | None) -> datetime | None:
    return None if seconds is None else _time(seconds)
