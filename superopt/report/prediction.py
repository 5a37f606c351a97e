"""What is said of a device that is not here."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from superopt.report.record import Record


class PredictionReport(Record):
    """What the result should gain on a device that is not here, from times that were recorded there.

    Predicted, not measured: nothing was timed in this run, so that nothing shows that the result is not slower.
    """

    device: str
    driver: str
    onnxruntime: str = Field(description="under which the times were recorded; another one has other kernels")
    deployment: str = Field(description="the session that the recorded times belong to")
    costs: str = Field(description="path of the cost file")
    samples: int = Field(description="recorded operators that prices were fitted to")
    samples_of: int = Field(description="operators that a whole calibration has")
    before: float = Field(description="seconds of a run of the original")
    before_is: Literal["recorded", "added up"] = Field(
        description="recorded as a whole, or added up from recorded regions and predicted ones"
    )
    after: float = Field(description="seconds of a run of the candidate, predicted")
    speedup: float = Field(description="before over after, predicted; 1 where nothing was rewritten")
    cautious: float = Field(
        description="the same, with half of every gain that was timed there once, and a third of what was never timed"
    )
    least: float = Field(description="what `cautious` must reach for the candidate to be returned")
    recorded_share: float = Field(description="part of a run that is in regions whose times were recorded")
    passes: float | None = Field(description="what passes alone gain, as recorded; none where that is unknown: 1 then")
    recorded_gains: int = Field(description="kinds of regions whose gain was timed there")
    predicted_gains: int = Field(description="kinds of regions whose gain is a prediction")
