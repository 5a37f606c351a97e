"""The devices that workers are started for, how many for each, and the cores that each of them has to itself."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from server.settings import Settings
from superopt.errors import BadOption

_DEVICE = re.compile(r"cpu|cuda:[A-Za-z0-9-]+")
_ASK_SECONDS = 30
_SEARCHERS = 2
_LEAST_CORES = 2
"""Of a worker, for it to be one of several on a GPU."""


@dataclass(frozen=True)
class Place:
    """Room for one job at a time. Jobs of several places on one device take turns at what runs on it."""

    device: str
    number: int = 0

    @property
    def name(self) -> str:
        return f"{self.device}/{self.number}" if self.number else self.device


def wanted(settings: Settings) -> list[str]:
    """As the settings name them; or every GPU that the driver shows, or else the CPU."""
    if settings.devices == "auto":
        return [f"cuda:{id}" for id in _visible()] or ["cpu"]
    found = [d.strip() for d in settings.devices.split(",") if d.strip()]
    for device in found:
        if not _DEVICE.fullmatch(device):
            raise BadOption(f"--devices: expected cpu or cuda:N, found {device!r}")
    if not found or len(set(found)) < len(found):
        raise BadOption(f"--devices: expected different devices, found {settings.devices!r}")
    return found


def places(settings: Settings) -> list[Place]:
    """As many for each device as the settings say. Unless they do: a CPU has one, because a search beside it would
    take the cores, or the memory, of what is being timed; a GPU has two, if there are cores for them."""
    devices = wanted(settings)
    enough = len(os.sched_getaffinity(0)) >= _LEAST_CORES * _SEARCHERS * len(devices)

    def count(device: str) -> int:
        return settings.searchers or (_SEARCHERS if enough and device.startswith("cuda") else 1)

    return [Place(device, number) for device in devices for number in range(count(device))]


def cores_of(cores: Collection[int], number: int, count: int) -> frozenset[int]:
    """Of several workers on one machine each has cores of its own, so that the search of one does not disturb what
    another one measures; where there are too few cores for that, all have all."""
    if len(cores) < count:
        return frozenset(cores)
    ordered = sorted(cores)
    return frozenset(ordered[number * len(ordered) // count : (number + 1) * len(ordered) // count])


def served(offered: Mapping[str, str], place: Place, devices: int) -> dict[str, str]:
    """Of the targets that a machine offers, those that a worker takes jobs for, where there are so many devices: the
    CPU is one device, however many GPUs there are. Beside a single GPU one worker has it, on its own cores."""
    shared = place.device.startswith("cuda") and (devices > 1 or place.number > 0)
    return {target: fingerprint for target, fingerprint in offered.items() if not (shared and target == "cpu")}


def _visible() -> list[str]:
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [d.strip() for d in given.split(",") if d.strip() and d.strip() != "-1"]
    query = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=_ASK_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in answer.splitlines() if line.strip().isdecimal()]
