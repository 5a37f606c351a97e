"""Where a job stands: the stage it is in, and the best speed-up so far, told along with each stage."""

from __future__ import annotations

from dataclasses import dataclass

from superopt.search.ending import Basis


@dataclass
class Standing:
    stage: str = "starting"
    speedup: float | None = None
    basis: Basis | None = None

    def hear(self, speedup: float, basis: Basis) -> None:
        """The latest counts, but no prediction once whole models were timed. At worst the original is the best."""
        if basis == "predicted" and self.basis == "measured":
            return
        self.speedup, self.basis = max(1.0, speedup), basis
