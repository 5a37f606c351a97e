"""What `superopt calibrate` measured, and what `superopt costs` finds in a cost file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from superopt.report.record import SCHEMA_VERSION, Environment, Record


class Tally(Record):
    """What became of everything that was to be timed."""

    known: int = Field(description="were in the cost file before")
    measured: int
    failed: int = Field(description="cannot be run alone; kept too, so that they are not tried again")
    left: int = Field(description="the time was over")


class CalibratedModel(Record):
    path: str
    nodes: int
    regions: int = Field(description="regions of the model, equal ones counted each")
    signatures: int = Field(description="regions of different structure")
    share: float = Field(description="part of its predicted time that is in regions whose times are now known")
    deployment: str = Field(description="the session that they were timed with")
    options: str = Field(description="session options that were found best for it; empty where that was not asked")
    searched: bool = Field(
        description="whether the search for candidates came to its end, as far as a search of this model goes"
    )
    notes: list[str] = Field(default_factory=list, description="what could not be done, and why")


class CalibrationReport(Record):
    """What `superopt calibrate` says."""

    schema_version: int = SCHEMA_VERSION
    costs: str = Field(description="path of the cost file")
    environment: Environment = Field(description="where the times were taken")
    samples: Tally = Field(description="the operators that prices are fitted to")
    signatures: Tally = Field(description="regions of different structure, over all models")
    candidates: int = Field(description="times besides: of what the rewriter would look at, and of second looks")
    models: list[CalibratedModel]
    interrupted: bool = Field(description="the user asked for an end; what was measured until then was kept")
    time_limit: float
    seconds: float


class RecordedDeployment(Record):
    deployment: str
    times: int = Field(description="regions with a time, samples included")


class RecordedMachine(Record):
    """A device with its driver under one onnxruntime: times of two of them are never mixed."""

    target: Literal["cpu", "cuda"]
    device: str
    driver: str
    onnxruntime: str
    deployments: list[RecordedDeployment]
    failures: int = Field(description="regions that could not be run")
    comparisons: int = Field(description="whole models compared")
    outdated: int = Field(description="entries of another method of measuring, which this version does not use")
    measured: str = Field(description="day of the latest entry")


class CostsReport(Record):
    """What `superopt costs` finds in a file, or has written to one."""

    schema_version: int = SCHEMA_VERSION
    file: str
    machines: list[RecordedMachine]
    conflicts: int = Field(default=0, description="answers of later files that an earlier one answers otherwise")
    farthest: float = Field(default=1.0, description="the most by which two times of one region differed, as a factor")
