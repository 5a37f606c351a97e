"""How many cores a process may really use: its affinity, without hyperthreads, inside its container's quota."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path

_TOPOLOGY = Path("/sys/devices/system/cpu")
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores() -> int:
    cores = physical_cores(allowed_cpus(), _TOPOLOGY)
    quota = container_quota(_QUOTA)
    return cores if quota is None else max(1, min(cores, quota))


def allowed_cpus() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def physical_cores(cpus: Iterable[int], topology: Path) -> int:
    """Distinct cores behind the given logical CPUs; where the kernel does not tell, each counts as one."""
    return len({_siblings(topology / f"cpu{cpu}" / "topology", str(cpu)) for cpu in cpus})


def _siblings(topology: Path, alone: str) -> str:
    for name in ("core_cpus_list", "thread_siblings_list"):
        try:
            return (topology / name).read_text().strip()
        except OSError:
            continue
    return alone


def container_quota(file: Path) -> int | None:
    """Whole CPUs of a cgroup's `cpu.max`, rounded up; None where there is no limit."""
    try:
        limit, period = file.read_text().split()
        return math.ceil(int(limit) / int(period))
    except (OSError, ValueError):
        return None
