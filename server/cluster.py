"""The border to Ray (extra `ray`): what nodes a cluster has, and work sent to one of them.

Ray starts nothing again by itself: a job that was lost goes back into the queue of the database, which alone knows
whether it was.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from server.node import Errand, Kind, offered, work
from superopt.errors import BadOption, CannotRun

Handle: TypeAlias = Any
"""Of work under way; can be a key of a dictionary."""
CRUMB = 0.001
"""Of a GPU: enough to see it, and left over for others where several jobs share it."""


@dataclass(frozen=True)
class Node:
    id: str
    address: str
    cpus: int
    gpus: int
    memory: int
    """Bytes."""


@dataclass(frozen=True)
class Ended:
    handle: Handle
    value: Any = None
    error: str | None = None
    """Why there is no value: the work failed, or its process or its node died."""
    started: bool = True
    """Whether anybody began with it."""


class Cluster(Protocol):
    name: str
    """The same for all who are connected to it."""

    def nodes(self) -> list[Node]:
        """Those that are alive."""
        ...

    def ask(self, node: Node, kind: Kind, environment: Mapping[str, str], count: int) -> Handle: ...

    def start(self, node: Node, kind: Kind, errand: Errand) -> Handle: ...

    def ended(self, handles: Sequence[Handle], seconds: float) -> list[Ended]:
        """Wait so long for one of them at most."""
        ...

    def cancel(self, handle: Handle) -> None: ...

    def close(self) -> None: ...


class RayCluster:
    def __init__(self, address: str) -> None:
        try:
            import ray
        except ImportError:
            raise BadOption("--engine ray needs Ray: pip install 'superopt[ray]'") from None
        self._ray: Any = ray
        ends = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(address=address or "auto", log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise CannotRun(f"no Ray cluster answers at {address or 'auto'}: {error}") from None
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, ends)  # Ray has put one there that ends the process at once
        self.name = str(ray.get_runtime_context().gcs_address)

    def nodes(self) -> list[Node]:
        return [_node(found) for found in self._ray.nodes() if found["Alive"]]

    def ask(self, node: Node, kind: Kind, environment: Mapping[str, str], count: int) -> Handle:
        task = self._task(_offered, node, num_cpus=0, num_gpus=CRUMB if kind == "cuda" else 0)
        return task.remote(dict(environment), kind, count)

    def start(self, node: Node, kind: Kind, errand: Errand) -> Handle:
        """On the CPU a job has the whole node; of a GPU, one, with its share of everything else."""
        asked = int(errand.claim.job.options.get("memory_limit") or 0) or errand.memory
        task = self._task(
            _work, node, num_cpus=node.cpus // errand.count, num_gpus=1 if kind == "cuda" else 0,
            memory=min(asked << 20, node.memory // errand.count),
        )  # fmt: skip
        return task.remote(kind, errand)

    def ended(self, handles: Sequence[Handle], seconds: float) -> list[Ended]:
        if not handles:
            return []
        first, others = self._ray.wait(list(handles), num_returns=1, timeout=seconds)
        ready = first + self._ray.wait(others, num_returns=len(others), timeout=0)[0] if first and others else first
        return [self._result(handle) for handle in ready]

    def cancel(self, handle: Handle) -> None:
        self._ray.cancel(handle, force=True)

    def close(self) -> None:
        self._ray.shutdown()

    def _result(self, handle: Handle) -> Ended:
        try:
            return Ended(handle, self._ray.get(handle))
        except self._ray.exceptions.RayError as error:
            nobody = isinstance(error, self._ray.exceptions.TaskUnschedulableError)
            return Ended(handle, error=_told(error), started=not nobody)

    def _task(self, function: Any, node: Node, **resources: float) -> Any:
        here = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node.id, soft=False)
        return self._ray.remote(max_retries=0, scheduling_strategy=here, **resources)(function)


def _node(found: Mapping[str, Any]) -> Node:
    has = found["Resources"]
    return Node(
        found["NodeID"], found["NodeManagerAddress"], int(has.get("CPU", 0)), int(has.get("GPU", 0)),
        int(has.get("memory", 0)),
    )  # fmt: skip


def _told(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1].strip()[:300] if lines else ''}"


def _device(kind: Kind) -> str:
    """The one that Ray gave to this task."""
    if kind == "cpu":
        return "cpu"
    import ray

    return f"cuda:{ray.get_gpu_ids()[0]}"


def _offered(environment: Mapping[str, str], kind: Kind, count: int) -> dict[str, Any]:
    return offered(environment, _device(kind), 0, count)


def _work(kind: Kind, errand: Errand) -> None:
    work(errand, _device(kind))
