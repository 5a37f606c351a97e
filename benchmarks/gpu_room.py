"""Where races wait: each in a process that holds its networks open, until it can be timed alone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import slots
from benchmarks.commandline import TIMED_OUT
from benchmarks.gpu_steps import OutOfTime, StepFailed
from benchmarks.waiting import Waiting

MOST = 64
LEFT_FREE = 0.25
"""Of the machine's memory and of the device's, for those that are still at work."""

_MEMORY = Path("/proc/meminfo")


@dataclass
class Room:
    """Those that wait to be timed."""

    worker: Path
    everyone: list[Waiting] = field(default_factory=list[Waiting])
    _asking: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_full(self) -> bool:
        with self._asking:
            if not self.everyone:
                return False
            return len(self.everyone) >= MOST or min(_free(), _free_on_device()) < LEFT_FREE

    def prepared(
        self, step: str, task: dict[str, Any], folder: Path, seconds: float, left: Callable[[], float]
    ) -> Waiting:
        """A step of the worker that has come to its gate. `seconds` is what it may take, `left` what all have."""
        if left() <= 0:
            raise OutOfTime
        until = time.monotonic() + seconds
        waiting = self.begin((*slots.pinned(), sys.executable, self.worker, step), task, folder)
        self.everyone.append(waiting)
        done = waiting.until_ready(lambda: min(until - time.monotonic(), left()))
        if done is None:
            return waiting
        self.everyone.remove(waiting)
        if done.returncode == TIMED_OUT and left() < until - time.monotonic():
            raise OutOfTime
        raise StepFailed(done)

    def begin(self, command: Sequence[str | Path], task: dict[str, Any], folder: Path) -> Waiting:
        return Waiting(command, json.loads(json.dumps(task, default=dict)), folder)

    def finished(self, waiting: Waiting, seconds: float, patience: float) -> dict[str, Any]:
        """What it answers when it is let through."""
        if patience <= 0:
            raise OutOfTime
        done, answer = waiting.finish(min(seconds, patience))
        self.everyone.remove(waiting)
        if answer is not None:
            return answer
        raise OutOfTime if done.returncode == TIMED_OUT and patience < seconds else StepFailed(done)

    def dismiss(self, *those: Waiting) -> None:
        """All, where none are named."""
        gone = those or tuple(self.everyone)
        Waiting.dismiss_all(gone)
        for waiting in gone:
            self.everyone.remove(waiting)


def _free() -> float:
    """The part of the machine's memory; all of it where the system does not say."""
    told = dict(re.findall(r"^(\w+): +(\d+) kB", _MEMORY.read_text(), re.MULTILINE)) if _MEMORY.exists() else {}
    return int(told["MemAvailable"]) / int(told["MemTotal"]) if "MemAvailable" in told else 1.0


def _free_on_device() -> float:
    """The same of the device's, where the driver's tool says."""
    query = ["nvidia-smi", "--query-gpu=memory.free,memory.total", "--format=csv,noheader,nounits"]
    try:
        told = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
        free, total = told.splitlines()[0].split(",")
        return int(free) / int(total)
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return 1.0
