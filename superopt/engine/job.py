"""What passes between the process that asks and the process that works: one JSON line each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from superopt.report import Environment, ModelFacts, Record
from superopt.search.ending import Basis

CAREFUL = "careful"
"""Tells the process that works to try every model out elsewhere before it opens it."""


class OptimizeJob(Record):
    kind: Literal["optimize"] = "optimize"
    model: Path
    folder: Path = Field(description="an empty folder for the result, on the file system of the output")
    name: str = Field(description="file name of the result")
    data_name: str = Field(description="name of its data file, should it need one")
    share_data: bool = Field(description="the result lies beside the original and may use the same data files")
    options: dict[str, Any]
    turn: Path | None = Field(default=None, description="file whose lock says whose turn it is on the device")


class CheckJob(Record):
    kind: Literal["check"] = "check"
    original: Path
    candidate: Path
    options: dict[str, Any]


class BenchJob(Record):
    kind: Literal["bench"] = "bench"
    models: list[Path]
    options: dict[str, Any]


class DiffJob(Record):
    kind: Literal["diff"] = "diff"
    before: Path
    after: Path
    html: Path | None = Field(description="where the page goes, if one is wanted")
    options: dict[str, Any]


class PageJob(Record):
    kind: Literal["page"] = "page"
    original: Path
    candidate: Path | None = Field(description="the rewritten model, returned or not; none when nothing was rewritten")
    report: dict[str, Any]
    html: Path
    options: dict[str, Any]


class SceneJob(Record):
    kind: Literal["scene"] = "scene"
    original: Path
    candidate: Path = Field(description="the rewritten model, returned or not")
    report: dict[str, Any]
    scene: Path
    options: dict[str, Any]


class AuditJob(Record):
    kind: Literal["audit"] = "audit"
    original: Path
    optimized: Path
    audited: Path = Field(description="the report")
    specs: list[Path] = Field(description="folders of further operator definitions")
    options: dict[str, Any]


class ExplainJob(Record):
    kind: Literal["explain"] = "explain"
    model: Path
    nodes: list[str] = Field(description="`NODE` or `NODE:RULE` each")
    report: dict[str, Any] | None = Field(description="of a search on the model, if there was one")
    options: dict[str, Any]


class CalibrateJob(Record):
    kind: Literal["calibrate"] = "calibrate"
    models: list[Path]
    seconds: float = Field(description="to measure in; the job ends by itself then")
    options: dict[str, Any]


AnyJob: TypeAlias = (
    OptimizeJob | CheckJob | BenchJob | DiffJob | PageJob | SceneJob | AuditJob | ExplainJob | CalibrateJob
)
Job = Annotated[AnyJob, Field(discriminator="kind")]
JOB: TypeAdapter[AnyJob] = TypeAdapter(Job)


class Stage(Record):
    """The work has come this far."""

    event: Literal["stage"] = "stage"
    stage: str
    detail: str = ""
    speedup: float | None = Field(default=None, ge=1.0, description="the best so far; 1 where that is the original")
    basis: Basis | None = Field(default=None, description="where it comes from")
    waited: float = Field(default=0.0, ge=0.0, description="seconds spent waiting for the device, so far")


class Known(Record):
    """What the input is, sent as soon as it is known, so that a report can be made whatever happens next."""

    event: Literal["known"] = "known"
    facts: ModelFacts
    external: list[str] = Field(description="data files beside the model")
    environment: Environment


class Offer(Record):
    """From now on there is something to end with, should the user not want to wait."""

    event: Literal["offer"] = "offer"


class Done(Record):
    event: Literal["done"] = "done"
    report: dict[str, Any]
    result: Path | None = Field(default=None, description="the model to deliver, staged")
    data_files: list[str] = Field(default_factory=list)
    candidate: Path | None = Field(default=None, description="the rewritten model, staged, returned or not")


class Failed(Record):
    """An error of the tree in `superopt.errors`, by name."""

    event: Literal["failed"] = "failed"
    error: str
    message: str


AnyEvent: TypeAlias = Stage | Known | Offer | Done | Failed
Event = Annotated[AnyEvent, Field(discriminator="event")]
EVENT: TypeAdapter[AnyEvent] = TypeAdapter(Event)
