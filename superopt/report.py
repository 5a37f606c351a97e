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
    kind: Literal["pass", "rule"] = Field(
        default="pass", description="a safe pass, or a proved rule that the search applied"
    )
    rule_digest: str = Field(default="", description="of the rule's text and of the formulas it uses; empty for a pass")
    nodes: list[str] = Field(default_factory=list, description="nodes of the region, each by its first named output")
    results: list[str] = Field(default_factory=list, description="names of the values that were recomputed")
    choice: int = Field(default=0, description="which of the rule's matches on these results, in the matcher's order")
    region: int | None = Field(default=None, description="the region of the search; equal regions share one number")
    predicted_us_before: float | None = Field(default=None, description="microseconds of the region, as predicted")
    predicted_us_after: float | None = None
    measured_us_before: float | None = Field(default=None, description="microseconds of the region, from the clock")
    measured_us_after: float | None = None


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


class PointTiming(Record):
    """One of several sizes that a model was timed at."""

    sizes: dict[str, int]
    weight: float
    before: Latency | None
    after: Latency | None
    speedup: float | None
    speedup_interval: Interval | None


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
    points: list[PointTiming] = Field(
        default_factory=list["PointTiming"], description="each of several sizes; the figures above weigh them together"
    )

    @classmethod
    def untimed(cls, reason: str) -> Self:
        return cls(
            status="untimed", reason=reason, before=None, after=None,
            speedup=None, speedup_interval=None, shapes={}, frozen=False,
        )  # fmt: skip


class SearchReport(Record):
    """What the search did."""

    rules: int = Field(description="proved rules that could be used")
    regions: int = Field(description="regions of the model")
    distinct_regions: int = Field(description="regions searched; the others are equal to one of them")
    candidates: int = Field(description="graphs seen, duplicates not counted")
    measured: int = Field(description="region graphs timed")
    alpha: float = Field(description="how much worse than the best a candidate may be predicted and still be followed")
    seconds: float = Field(description="spent searching, measuring not counted")
    measuring_seconds: float
    rank_correlation: float | None = Field(description="Spearman's, between predicted and measured region times")
    exhausted: bool = Field(description="nothing was left to try; otherwise a budget ended the search")


class Profile(Record):
    """Where the time goes, as onnxruntime's own profiler has it: microseconds per run, by operator it executed.

    The operators are those of the graph after onnxruntime's optimizations. The profiler costs time itself, so that the
    sums are above the latency.
    """

    before: dict[str, float]
    after: dict[str, float]
    runs: int = Field(description="over which the profile is an average")
    note: str = Field(default="", description="what the numbers do not say")


class TracedStep(Record):
    """One rewrite, told so that it can be made again."""

    rule: str
    digest: str = Field(description="of the rule's text and of the formulas it uses")
    results: list[str] = Field(description="names of the values computed again, in the order of the rule's results")
    inputs: dict[str, str] = Field(description="the rule's inputs, by the names of the values they stand for")


class TracedRegion(Record):
    """A region of the graph and the rewrites made in it, in order."""

    where: str = Field(description="the way through bodies to the region's graph; empty for the model's own")
    region: int = Field(description="equal regions share one number")
    members: list[str] = Field(description="its nodes, each by its first named output")
    steps: list[TracedStep]


class DeploymentTrial(Record):
    """One change to the session options."""

    change: str
    dimension: str
    against: str = Field(description="the deployment it was timed against: the best until then")
    verdict: Literal["faster", "not faster", "slower", "failed", "different", "not tried"]
    speedup: float | None
    interval: Interval | None = Field(description="95 % confidence interval of the speed-up")
    kept: bool = Field(description="part of what was timed against the base in the end")
    note: str = Field(description="what the verdict rests on, or why there is none")


class DeploymentReport(Record):
    """The session options that were measured, and the way to them."""

    options: dict[str, str] = Field(description="what the returned model was timed with, under onnxruntime's names")
    code: str = Field(description="Python that opens the model with them")
    base: dict[str, str] = Field(description="the options without a search")
    searched: bool
    verdict: Literal["faster", "base"] = Field(description="`base`: nothing else was faster with confidence")
    speedup: float | None = Field(description="the base's time over the best's, on the same graph")
    interval: Interval | None = Field(description="95 % confidence interval of the speed-up")
    tried: list[DeploymentTrial]
    notes: list[str]
    seconds: float


class Portable(Record):
    """What the result would be with standard ONNX operators alone."""

    operators: dict[str, int] = Field(description="onnxruntime's own operators in the result, which `standard` forbids")
    speedup: float | None = Field(description="of the model that `--allow standard` gives, over the original")
    interval: Interval | None = Field(description="95 % confidence interval of the speed-up")
    note: str = ""


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


class RuleAttempt(Record):
    """One rule tried at one node."""

    rule: str
    outcome: Literal["used", "matches", "no match"]
    reason: str = Field(description="what it would do and why it was not used, or why it does not match")
    fitted: int = Field(description="nodes and inputs of the rule that had fitted by then")


class Explained(Record):
    """Why a node was rewritten, or was not."""

    asked: str = Field(description="the name given with `--explain`")
    place: str = Field(description="the node, `outer/body/node` inside subgraphs")
    operator: str
    outputs: list[str] = Field(description="what it computes, with types")
    passes: list[str] = Field(description="safe passes that were made at it")
    barrier: str = Field(description="why no rule may touch it; empty where rules may")
    steps: list[str] = Field(description="rules that rewrote it in this run, in order")
    attempts: list[RuleAttempt] = Field(description="every rule that could begin at it, what fitted furthest first")
    detail: list[str] = Field(description="of the one rule asked for with `NODE:RULE`: its text, and every attempt")


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
    search: SearchReport | None = Field(default=None, description="none when the rules were not searched")
    trace: list[TracedRegion] = Field(
        default_factory=list[TracedRegion], description="the rules' rewrites, for `superopt audit` to make again"
    )
    left_out: list[tuple[str, str]] = Field(
        default_factory=list[tuple[str, str]], description="name and place of passes that were not made"
    )
    deployment: DeploymentReport | None = Field(default=None, description="none when the model could not be timed")
    portable: Portable | None = Field(default=None, description="none when the result has standard operators alone")
    profile: Profile | None = Field(default=None, description="made for the page of `--html` only")
    explained: list[Explained] = Field(
        default_factory=list[Explained], description="the nodes that were asked for with `--explain`"
    )
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


class DiffRegion(Record):
    """Changed nodes that hang together."""

    number: int
    place: str = Field(description="the first node, `outer/body/node` inside subgraphs")
    removed: int
    added: int
    changed: int
    like: int | None = Field(description="number of an earlier region of the same shape: names and weights may differ")
    lines: list[str] = Field(
        description="the nodes in text form after `- ` or `+ `; after two spaces, constants of both"
    )


class DiffReport(Record):
    """What `superopt diff` found: the structure of two models compared. Names count for inputs and outputs only."""

    schema_version: int = SCHEMA_VERSION
    same: bool
    before: ModelFacts
    after: ModelFacts
    kept: int
    changed: int
    removed: int
    added: int
    surroundings: list[str] = Field(description="`- ` and `+ ` lines: inputs, outputs, operator sets, IR version")
    regions: list[DiffRegion]


class AuditedRule(Record):
    """A rule that the trace names."""

    name: str
    digest: str = Field(description="of the rule's text and of the formulas it uses, as they stand now")
    proof: str
    steps: int = Field(description="rewrites that it made")


class AuditedWeights(Record):
    """How many constants of the result were compared how, with what the original and the trace give."""

    original: int = Field(description="of the original's file, found bit for bit")
    written: int = Field(description="numbers and lists that rules write, found bit for bit")
    folded: int = Field(description="computed by passes, found bit for bit")
    folded_near: int = Field(description="computed by passes, within one unit in the last place")
    combined: int = Field(description="combined by rules, found bit for bit")
    combined_near: int = Field(description="combined by rules, within one unit in the last place")


class AuditReport(Record):
    """What `superopt audit` could confirm. Times and the comparison of outputs are not part of it."""

    schema_version: int = SCHEMA_VERSION
    confirmed: bool
    problems: list[str] = Field(description="what could not be confirmed, the plainest reason first")
    original: str = Field(description="path")
    optimized: str = Field(description="path")
    returned: Literal["optimized", "original"] = Field(description="what the report says came back")
    passes: dict[str, int] = Field(description="how often each pass was made again")
    regions: int = Field(description="regions whose steps were made again")
    steps: int
    rules: list[AuditedRule]
    nodes: int = Field(description="nodes of the result that are what the trace gives, subgraphs included")
    weights: AuditedWeights | None = Field(description="none when they were not reached, or the original came back")
    notes: list[str]


class ExplainReport(Record):
    """What `superopt optimize --explain NODE` says without a search."""

    schema_version: int = SCHEMA_VERSION
    explained: list[Explained]
