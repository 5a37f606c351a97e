"""What passes between a worker and the process of its job: one JSON line each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from superopt.engine.job import Stage
from superopt.report import Record


class Work(Record):
    """What is to be done; paths are inside the working folder."""

    model: Path
    out: Path
    options: dict[str, Any]
    turn: Path | None = Field(default=None, description="file whose lock says whose turn it is on the device")
    file_bytes: int = Field(description="largest file that may be written")


class Delivery(Record):
    event: Literal["delivered"] = "delivered"
    report: dict[str, Any]
    data_files: list[str]
    stopped: str | None = Field(description="why the work did not end by itself; the original is what comes back then")


class Refusal(Record):
    event: Literal["refused"] = "refused"
    error: str
    message: str


Told = Annotated[Stage | Delivery | Refusal, Field(discriminator="event")]
TOLD: TypeAdapter[Stage | Delivery | Refusal] = TypeAdapter(Told)
