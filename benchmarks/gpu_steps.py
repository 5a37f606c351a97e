"""How a step of gpu.py may end without a result."""

from __future__ import annotations

from benchmarks.commandline import TIMED_OUT, Done
from benchmarks.gpu_cells import Status


class OutOfTime(Exception):
    """The run is over; what was under way is left for the next."""


class StepFailed(Exception):
    def __init__(self, done: Done) -> None:
        super().__init__(done.problem)
        self.status: Status = "timed out" if done.returncode == TIMED_OUT else "failed"
