"""What one interleaved run of several forms of a network tells of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.gpu_cells import Cell, Status
from benchmarks.records import Ratio
from superopt.cost.result import Comparison, PairTiming
from superopt.report import Interval

# ‖answer − reference‖ / ‖reference‖ that passes. The reference is the original on the CPU; float32 is timed with TF32,
# bfloat16 compared with the network in float32, since the CPU does not know it. Where the original itself is off by
# more, on the device, it is gpu_table.py that knows.
TOLERANCES = {"fp32": 1e-2, "fp16": 5e-2, "bf16": 5e-2}


@dataclass(frozen=True)
class Race:
    """What the worker answered: times of those that ran, each against the first, and how far off all were."""

    errors: Mapping[str, float | str]
    first: str
    comparison: Comparison | None

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> Race:
        told = answer["comparison"]
        return cls(answer["errors"], answer["first"], None if told is None else Comparison.model_validate(told))

    def over_first(self, name: str) -> Ratio | None:
        """Its time over the first's."""
        if name == self.first:
            return Ratio(value=1.0, low=1.0, high=1.0)
        pair = self._pair(name)
        if pair is None or pair.speedup is None:
            return None
        low, high = (pair.interval.low, pair.interval.high) if pair.interval else (None, None)
        return Ratio(value=pair.speedup, low=low, high=high).inverse()

    def _pair(self, name: str) -> PairTiming | None:
        pairs = self.comparison.pairs if self.comparison else ()
        return next((p for p in pairs if p.name == name), None)

    def fields(self, name: str, dtype: str) -> dict[str, Any]:
        """Of a cell: its state, time and error."""
        error = self.errors.get(name, "was not run")
        latency = self.comparison.latency(name) if self.comparison and not isinstance(error, str) else None
        if isinstance(error, str) or latency is None:
            return {"status": "failed", "detail": error if isinstance(error, str) else "could not be timed"}
        finite = error != float("inf")
        status: Status = "ok" if error <= TOLERANCES[dtype] else "wrong"
        return {
            "status": status,
            "detail": "" if finite else "shapes or NaNs differ",
            "median": latency.median,
            "interval": latency.interval,
            "error": error if finite else None,
        }


def beside_ours(cell: Cell, found: Race, name: str, yardstick: str) -> Cell:
    """With its time over superopt's, if that is what the others were raced against; `name` is its own in the race."""
    ratio = found.over_first(name)
    if ratio is None or cell.median is None or found.first != yardstick:
        return cell
    return cell.model_copy(update={"over_ours": ratio.value, "over_ours_interval": interval_of(ratio)})


def interval_of(ratio: Ratio) -> Interval | None:
    return None if ratio.low is None or ratio.high is None else Interval(low=ratio.low, high=ratio.high)
