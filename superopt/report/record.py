"""What every report is made of: frozen records, facts about a model, and where numbers were taken."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelFacts(Record):
    """What can be seen of a model without running it."""

    path: str | None = Field(description="where it was read from or written to")
    sha256: str = Field(description="of the .onnx file itself, external data not included")
    file_bytes: int = Field(description="of the .onnx file and its external data together")
    ir_version: int
    opsets: dict[str, int]
    nodes: int = Field(description="nodes, those of nested subgraphs included")
    operators: dict[str, int] = Field(description="how many nodes of each operator, subgraphs included")
    parameters: int = Field(description="elements of all initializers")


class Environment(Record):
    """Where the numbers were taken."""

    superopt: str
    python: str
    onnx: str
    onnxruntime: str
    target: Literal["cpu", "cuda"]
    device: str
    driver: str
    threads: int
    platform: str
