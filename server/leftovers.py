"""Processes that a killed worker left: a mark in their environment tells the next worker which they are."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

MARK = "SUPEROPT_WORK"
"""Environment variable that a job's process and all its children have."""


def kill_marked(mark: str) -> int:
    """End every process whose mark begins like this."""
    wanted = f"{MARK}={mark}".encode()
    killed = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):  # it ended meanwhile, or is not ours
            if any(entry.startswith(wanted) for entry in (folder / "environ").read_bytes().split(b"\0")):
                os.kill(int(folder.name), signal.SIGKILL)
                killed += 1
    return killed
