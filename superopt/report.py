"""What a run says about itself: one documented schema, written by `--report` and `--json`.

`superopt schema` prints it as JSON Schema. Field names are an interface: they are added to, never renamed.
"""

from __future__ import annotations

from typing import Literal, Self

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


class Rewrite(Record):
    """One change to the graph, under the name of the pass or rule that made it."""

    name: str
    place: str = Field(description="the node it was made at, `outer/body/node` inside subgraphs")
    detail: str = ""
    proof: str = Field(description="why it is right: `by definition`, or the rule's proof line")


class OutputCheck(Record):
    """The worst disagreement seen on one output over all checks."""

    output: str
    dtype: str
    max_absolute_error: float
    max_relative_error: float
    absolute_tolerance: float
    relative_tolerance: float
    equal: bool


class CheckReport(Record):
    """How original and result were compared."""

    status: Literal["equal", "different", "unchecked"]
    reason: str = Field(description="why it differs or was not checked; empty when equal")
    runs: int = Field(description="how many input sets both models were run on")
    inputs: list[str] = Field(description="one line for each input set: how it was made")
    outputs: list[OutputCheck]
    notes: list[str] = Field(default_factory=list, description="what the comparison could not see, or saw besides")


class Interval(Record):
    low: float
    high: float


class Latency(Record):
    """Seconds for one run of the model."""

    median: float
    interval: Interval = Field(description="95 % confidence interval of the median")
    spread: float = Field(description="interquartile range over median")
    runs: int


class TimingReport(Record):
    """Original and result timed in one interleaved session."""

    status: Literal["faster", "not faster", "slower", "untimed"]
    reason: str = Field(description="why there is no timing, or what stopped it")
    before: Latency | None
    after: Latency | None
    speedup: float | None = Field(description="before over after, median of interleaved pairs")
    speedup_interval: Interval | None = Field(description="95 % confidence interval of the speed-up")
    shapes: dict[str, list[int]] = Field(description="the input shapes that were timed")
    frozen: bool = Field(description="taken from the cost file instead of the clock")

    @classmethod
    def untimed(cls, reason: str) -> Self:
        return cls(
            status="untimed", reason=reason, before=None, after=None,
            speedup=None, speedup_interval=None, shapes={}, frozen=False,
        )  # fmt: skip


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


class Report(Record):
    schema_version: int = SCHEMA_VERSION
    verdict: str = Field(description="one line for people")
    returned: Literal["optimized", "original"]
    before: ModelFacts
    after: ModelFacts = Field(description="the model that was returned")
    rewrites: list[Rewrite] = Field(description="every change in the candidate, in the order made")
    candidate_nodes: int = Field(description="nodes of the candidate, also when the original came back")
    check: CheckReport
    timing: TimingReport
    environment: Environment
    options: dict[str, object] = Field(description="every option of the run, defaults included")
    peak_memory_bytes: int = Field(description="largest resident size of the working process")
    seconds: float
    notes: list[str] = Field(default_factory=list, description="what else the reader should know")


class BenchRow(Record):
    model: str
    file_bytes: int
    latency: Latency | None = Field(description="none when it could not be run")
    speedup: float | None = Field(description="the first model's time over this one's")
    speedup_interval: Interval | None
    verdict: str = Field(description="against the first model: faster, not faster, slower; or why there is none")


class BenchReport(Record):
    """What `superopt bench` measured, in one interleaved run."""

    schema_version: int = SCHEMA_VERSION
    rows: list[BenchRow]
    shapes: dict[str, list[int]]
    environment: Environment
    peak_memory_bytes: int
    frozen: bool
