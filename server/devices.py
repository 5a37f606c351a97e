"""The devices that workers are started for, and the cores that each of them has to itself."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Mapping

from server.settings import Settings
from superopt.errors import BadOption

_DEVICE = re.compile(r"cpu|cuda:[A-Za-z0-9-]+")
_ASK_SECONDS = 30


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


def cores_of(cores: Collection[int], number: int, count: int) -> frozenset[int]:
    """Of several workers on one machine each has cores of its own, so that the search of one does not disturb what
    another one measures; where there are too few cores for that, all have all."""
    if len(cores) < count:
        return frozenset(cores)
    ordered = sorted(cores)
    return frozenset(ordered[number * len(ordered) // count : (number + 1) * len(ordered) // count])


def served(offered: Mapping[str, str], device: str, count: int) -> dict[str, str]:
    """Of the targets that a machine offers, those that one of `count` workers takes jobs for: the CPU is one device,
    however many GPUs there are, and nobody measures on it while others work."""
    shared = device.startswith("cuda") and count > 1
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
