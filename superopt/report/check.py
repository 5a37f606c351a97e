"""Whether two models compute the same."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from superopt.report.record import Record


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
