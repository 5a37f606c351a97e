"""superopt and the peers as a user would run them: one process each, with an end to its patience."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from benchmarks.texts import without_folders

SUPEROPT = (sys.executable, "-m", "superopt")
TIMED_OUT = 124


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


def run(command: Sequence[str | Path], timeout: float, log: Path | None = None) -> Done:
    """Whatever it does, it is over when this returns, and so is everything it started. `log`: where what it says goes
    while it says it, so that of one that is stopped it is known how far it came."""
    words = [str(word) for word in command]
    if log is not None:
        with log.open("w") as file:
            return _logged(words, timeout, file, log)
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True
    ) as process:
        try:
            _, said = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            end(process)
            return Done(TIMED_OUT, f"stopped after {timeout:.0f} s")
        except BaseException:
            end(process)
            raise
    return Done(process.returncode, said)


def _logged(words: Sequence[str], timeout: float, file: TextIO, log: Path) -> Done:
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=file, text=True, start_new_session=True) as process:
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            end(process)
            return Done(TIMED_OUT, f"stopped after {timeout:.0f} s")
        except BaseException:
            end(process)
            raise
    return Done(process.returncode, log.read_text(errors="replace"))


def end(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def has_command(name: str) -> bool:
    """Whether this superopt knows the command."""
    return run((*SUPEROPT, name, "--help"), timeout=60).returncode == 0
