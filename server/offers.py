"""What a device offers: asked by a process of its own, so that none of the service's ever holds a device itself."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from server.children import plain_environment, python

PROBE_SECONDS = 300.0


class Unusable(Exception):
    """The device does not work, or could not be asked."""


def ask(device: str) -> dict[str, Any]:
    """`targets` that work here, each with its fingerprint, and `facts` for people; `server.probe` says more."""
    try:
        probe = subprocess.run(
            python("server.probe"),
            env=plain_environment(device),
            capture_output=True,
            timeout=PROBE_SECONDS,
            check=True,
        )
        offered = json.loads(probe.stdout)
    except (subprocess.SubprocessError, ValueError) as error:
        raise Unusable(f"it could not be asked: {error}") from None
    if "error" in offered:
        raise Unusable(offered["error"])
    if device.startswith("cuda") and "cuda" not in offered["targets"]:
        raise Unusable(f"CUDA does not work here ({offered['facts']['cuda']}); --devices cpu would")
    return offered
