"""Asks the machine what it offers. Run as `python -m server.probe`, so that no worker holds a device itself.

One JSON object on stdout: the targets that work here, each with a fingerprint of everything that a result depends on
besides the model and the options, and facts about the device for people.
"""

from __future__ import annotations

import hashlib
import json
import platform
from importlib.metadata import version
from typing import Any

from superopt.errors import SuperoptError
from superopt.runtime.cores import usable_cores
from superopt.runtime.facts import device_facts, runtime_facts
from superopt.runtime.target import cuda_state
from superopt.search.rulebook import open_rulebook
from superopt.version import __version__


def main() -> None:
    try:
        print(json.dumps(_facts()))
    except SuperoptError as error:
        print(json.dumps({"error": str(error)}))


def _facts() -> dict[str, Any]:
    rules = open_rulebook().digests
    rule_set = _digest(sorted(rules.items()))
    cuda = cuda_state()
    runtime = runtime_facts()
    base = [__version__, version("onnx"), runtime.version, platform.machine(), usable_cores(), rule_set]

    def fingerprint(target: str) -> str:
        device = device_facts("cuda" if target == "cuda" else "cpu")
        return _digest([*base, device.target, device.name, device.driver])

    best = "cuda" if cuda.works else "cpu"
    device = device_facts(best)
    return {
        "targets": {"auto": fingerprint(best), "cpu": fingerprint("cpu")}
        | ({"cuda": fingerprint("cuda")} if cuda.works else {}),
        "facts": {
            "name": device.name,
            "target": best,
            "driver": device.driver,
            "cuda": "works" if cuda.works else cuda.reason,
            "onnxruntime": runtime.version,
            "superopt": __version__,
            "rules": len(rules),
            "rule_set": rule_set[:12],
        },
    }


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


if __name__ == "__main__":
    main()
