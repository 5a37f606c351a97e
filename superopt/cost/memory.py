"""How large a process became, as the kernel counts it."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path


def resident_bytes(pid: int | None = None) -> int | None:
    """Resident now; None when there is no such process, or no way to ask."""
    return _status(pid, "VmRSS")


def peak_resident_bytes() -> int:
    """The most this process has ever been resident."""
    peak = _status(None, "VmHWM")
    if peak is not None:
        return peak
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024


def watch(pid: int, running: Callable[[], bool], every: float = 0.05) -> int:
    """The most another process was seen resident while `running` says it runs."""
    peak = 0
    while True:
        peak = max(peak, _status(pid, "VmHWM") or 0)
        if not running():
            return peak
        time.sleep(every)


def _status(pid: int | None, field: str) -> int | None:
    try:
        lines = Path(f"/proc/{'self' if pid is None else pid}/status").read_text().splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith(f"{field}:")), None)
    return None if found is None else int(found.split()[1]) * 1024
