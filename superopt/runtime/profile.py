"""Microseconds by operator, from onnxruntime's own profiler.

The operators are those that run: what onnxruntime fused appears under the name of the fused operator. On CUDA the
profiler sees how long a launch takes on the host, not how long the kernel runs.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from superopt.errors import CannotRun
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session
from superopt.runtime.values import Value

WARM_UP = 2
RUNS = 10
SECONDS = 5.0
_WITH_BODIES = ("If", "Loop", "Scan", "SequenceMap")
"""Their time is that of the nodes inside, which are told of one by one."""


@dataclass(frozen=True)
class OperatorTimes:
    """For one run, the average of `runs`."""

    microseconds: Mapping[str, float]
    runs: int


def profile(
    model: Path | bytes, deployment: Deployment, feeds: Mapping[str, Value], *, runs: int = RUNS
) -> OperatorTimes:
    """Run a model `runs` times under the profiler, or as often as `SECONDS` allow. Leaves no file behind."""
    with tempfile.TemporaryDirectory(prefix="superopt-profile-") as folder:
        with Session(model, _without_capture(deployment), profile=Path(folder) / "profile") as session:
            for _ in range(WARM_UP):
                session.run(feeds)
            made, until = 0, time.monotonic() + SECONDS
            while made == 0 or (made < runs and time.monotonic() < until):
                session.run(feeds)
                made += 1
            path = session.end_profile()
        try:
            events = json.loads(path.read_bytes())
        except (OSError, ValueError) as error:
            raise CannotRun(f"onnxruntime's profile cannot be read: {error}") from None
    return OperatorTimes(_sums(events, made), made)


def _without_capture(deployment: Deployment) -> Deployment:
    """A captured graph is one launch: the profiler would see nothing inside it."""
    options = tuple((name, value) for name, value in deployment.provider_options if name != "enable_cuda_graph")
    return replace(deployment, provider_options=options)


def _sums(events: list[dict[str, Any]], runs: int) -> dict[str, float]:
    """Microseconds per run of each operator, over the last `runs` runs, the largest first."""
    starts = sorted(event["ts"] for event in events if event.get("name") == "model_run")
    since = starts[-runs] if len(starts) >= runs else 0
    found: dict[str, float] = defaultdict(float)
    for event in events:
        operator = event.get("args", {}).get("op_name", "")
        if event.get("cat") != "Node" or not str(event.get("name", "")).endswith("_kernel_time"):
            continue
        if operator and operator not in _WITH_BODIES and event["ts"] >= since:
            found[operator] += event["dur"]
    ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return {operator: round(total / runs, 3) for operator, total in ordered}
