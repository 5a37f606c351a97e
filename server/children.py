"""Processes that the service starts: what they may see of the environment, and how they end."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import superopt

_PASSED = re.compile(r"PATH|HOME|LANG|LC_.*|TZ|TMPDIR|LD_.*|XDG_.*|CUDA.*|NVIDIA.*|OMP_.*|NO_COLOR|PYTHON.*")
_PR_SET_PDEATHSIG = 1
ROOT = Path(superopt.__file__).resolve().parent.parent


def python(module: str, *arguments: str) -> list[str]:
    """`-P`: a file in the working folder is never taken for a module, whatever its name."""
    return [sys.executable, "-P", "-m", module, *arguments]


def plain_environment(device: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """For a process that handles what clients send: no setting of the service, no secret."""
    passed = {name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    visible = device.partition(":")[2] if device.startswith("cuda") else ""
    own = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "CUDA_VISIBLE_DEVICES": visible}
    return {**passed, **own, **(more or {})}


def end_with_parent(parent: int, number: signal.Signals = signal.SIGTERM) -> None:
    """Ask Linux for a signal when the process that started this one ends, however that happens."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        sys.exit("the parent is gone")


def stop(child: subprocess.Popen[bytes], patience: float) -> None:
    """Ask a child to end, and make it."""
    with contextlib.suppress(ProcessLookupError):
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(patience)
            except subprocess.TimeoutExpired:
                child.kill()
    child.wait()
