"""superopt and the peers as a user would run them: one process each, with an end to its patience."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.texts import without_folders

SUPEROPT = (sys.executable, "-m", "superopt")
TIMED_OUT = 124
GLANCE = 0.5  # seconds between two looks at how much time is left


@dataclass(frozen=True)
class Done:
    returncode: int
    said: str  # on stderr

    @property
    def problem(self) -> str:
        """How it ended, with the line that usually says why."""
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        why = without_folders(lines[-1])[:300] if lines else "no message"
        if self.returncode == TIMED_OUT:
            return why
        if self.returncode < 0:
            return f"{signal.Signals(-self.returncode).name}: {why}"
        return f"exit code {self.returncode}: {why}"


def run(command: Sequence[str | Path], timeout: float | Callable[[], float], log: Path | None = None) -> Done:
    """Whatever it does, it is over when this returns, and so is everything it started. `timeout`: its seconds, or what
    says how many are left now, where that may come to be fewer. `log`: where what it says goes while it says it, so
    that of one that is stopped it is known how far it came."""
    words = [str(word) for word in command]
    with tempfile.TemporaryDirectory() as folder:
        told = log or Path(folder) / "log"
        with told.open("w") as file:
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=file, start_new_session=True)
            started = time.monotonic()
            try:
                while process.poll() is None:
                    left = timeout() if callable(timeout) else timeout - (time.monotonic() - started)
                    if left <= 0:
                        return Done(TIMED_OUT, f"stopped after {int(time.monotonic() - started)} s")
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(min(left, GLANCE))
            finally:
                end(process)
        return Done(process.returncode, told.read_text(errors="replace"))


def end(*processes: subprocess.Popen[bytes]) -> None:
    """With all that they started and that is still there."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    for process in processes:
        process.wait()


def has_command(name: str) -> bool:
    """Whether this superopt knows the command."""
    return run((*SUPEROPT, name, "--help"), timeout=60).returncode == 0
