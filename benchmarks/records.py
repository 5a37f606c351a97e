"""What optimizer.py finds out about one model; it is kept as JSON, so that a run that was stopped can go on."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from superopt.report import Environment, Record

# The contenders of a timing that are no peers.
OURS, ORIGINAL, BY_HAND = "superopt", "original", "by hand"

Status = Literal[
    "ok",
    "unchanged",  # the graph is the original's: its time is the original's too
    "wrong",  # superopt check found another answer, be it by a little; timed, but no match for anyone
    "unchecked",  # the check could not run it
    "crashed",
    "timed out",
    "does not apply",
    "not installable",
]


class Ratio(Record):
    """One time over another, with its 95 % interval; no interval where too little was measured."""

    value: float
    low: float | None = None
    high: float | None = None

    def inverse(self) -> Ratio:
        bounds = (None, None) if self.low is None or self.high is None else (1 / self.high, 1 / self.low)
        return Ratio(value=1 / self.value, low=bounds[0], high=bounds[1])


class PeerOutcome(Record):
    """What another optimizer made of a model."""

    peer: str
    version: str
    status: Status
    detail: str = ""
    seconds: float = 0.0
    nodes: int = 0
    file_bytes: int = 0
    graph: str = Field(default="", description="digest of nodes and weights")


class OptimizeOutcome(Record):
    """What `superopt optimize` said; `problem` is empty when nothing happened that must not."""

    problem: str = ""
    returned: Literal["original", "optimized"] = "original"
    verdict: str = ""
    check: str = ""
    nodes: int = Field(default=0, description="nodes of the model that was returned")
    file_bytes: int = 0
    candidate_nodes: int = 0
    rewrites: dict[str, int] = Field(
        default_factory=dict[str, int], description="how often each rule or pass was applied"
    )
    own_speedup: Ratio | None = Field(default=None, description="from the run's own report")
    seconds: float = 0.0
    search_seconds: float | None = Field(default=None, description="searching, measuring not counted")
    measuring_seconds: float | None = None
    candidates: int | None = None
    rank_correlation: float | None = None
    peak_memory_bytes: int = 0


class AuditOutcome(Record):
    status: Literal["passed", "failed", "no audit command", "nothing to audit"]
    detail: str = ""


class Contender(Record):
    """One model in the timing. `ratio` is its time over that of superopt's result: above 1, superopt's is faster."""

    name: str
    median: float | None = Field(description="seconds for one run; none when it could not be run")
    ratio: Ratio | None
    detail: str = ""


class Result(Record):
    name: str
    group: str
    key: str = Field(description="digest of the model, the code and the options: what would have to be the same again")
    code: str = Field(description="digest of superopt's code, specs and rules")
    command: str = Field(description="the `superopt optimize` that was run")
    nodes: int
    file_bytes: int
    optimize: OptimizeOutcome
    audit: AuditOutcome
    peers: list[PeerOutcome]
    contenders: list[Contender]
    timing_problem: str = ""
    environment: Environment | None
    date: str

    def outcome(self, peer: str) -> PeerOutcome | None:
        return next((p for p in self.peers if p.peer == peer), None)

    def is_wrong(self, peer: str) -> bool:
        outcome = self.outcome(peer)
        return outcome is not None and outcome.status == "wrong"

    def contender(self, name: str) -> Contender | None:
        return next((c for c in self.contenders if c.name == name), None)
