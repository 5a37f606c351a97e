"""What `superopt diff` says."""

from __future__ import annotations

from pydantic import Field

from superopt.report.record import SCHEMA_VERSION, ModelFacts, Record


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
