"""The same work on a Ray cluster (extra `ray`): portions of fingerprints and questions to the prover as its tasks.

Ray starts a task again when the process or the machine that had it dies, and results are taken in the order of the
work, so what comes out is what one process alone would find.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import specs
from superopt.errors import BadOption, CannotRun
from superopt.generate.answering import Question, answer
from superopt.generate.enumerate import alone, fingerprints
from superopt.generate.local import FEW, batches
from superopt.generate.residues import Array
from superopt.generate.table import Table
from superopt.generate.work import Work

AHEAD = 4
"""Tasks for each CPU of the cluster that wait their turn, at most."""


class Cluster:
    """A connection to a cluster; closed when left."""

    def __init__(self, address: str | None, folders: tuple[Path, ...] = ()) -> None:
        try:
            import ray
        except ImportError:
            raise BadOption("--engine ray needs Ray: pip install 'superopt[ray]'") from None
        self.ray: Any = ray
        self._folders = folders
        try:
            ray.init(
                address=address or "auto", ignore_reinit_error=True, log_to_driver=False, logging_level=logging.ERROR
            )
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise CannotRun(f"no Ray cluster answers at {address or 'auto'}: {error}") from None
        for module in specs.of_user():  # they travel with what needs them
            self.ray.cloudpickle.register_pickle_by_value(module)
        self.cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.ray.shutdown()

    def spread(self) -> Callable[[Table, Sequence[Work], Sequence[int]], Iterator[Array]]:
        """As `local`, over the cluster."""
        task = self.ray.remote(max_retries=-1)(_fingerprints)

        def over(table: Table, works: Sequence[Work], worlds: Sequence[int]) -> Iterator[Array]:
            if sum(w.stop - w.start for w in works) < FEW:
                yield from alone(table, works, worlds)
                return
            shared = self.ray.put(table)
            waiting: list[Any] = []
            for batch in batches(works):
                waiting.append(task.remote(shared, batch, tuple(worlds)))
                if len(waiting) >= AHEAD * self.cpus:
                    yield from self.ray.get(waiting.pop(0))
            for reference in waiting:
                yield from self.ray.get(reference)

        return over

    def pool(self) -> RayPool:
        return RayPool(self.ray, self.cpus, self._folders)


class RayPool:
    """Questions to the prover as tasks; the same face as `Workers`."""

    def __init__(self, ray: Any, count: int, folders: tuple[Path, ...]) -> None:
        self._ray, self._count, self._folders = ray, count, folders
        self._task = ray.remote(max_retries=-1, max_calls=200)(_answer)
        self._asked: dict[Any, str] = {}

    @property
    def idle(self) -> bool:
        return len(self._asked) < self._count

    @property
    def busy(self) -> bool:
        return bool(self._asked)

    def ask(self, key: str, question: Question) -> None:
        self._asked[self._task.remote(question, self._folders)] = key

    def answers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Waits for one."""
        ready, _ = self._ray.wait(list(self._asked), num_returns=1)
        for reference in ready:
            yield self._asked.pop(reference), self._ray.get(reference)


def _fingerprints(table: Table, works: tuple[Work, ...], worlds: tuple[int, ...]) -> list[Array]:
    return [fingerprints(table, work, worlds) for work in works]


def _answer(question: Question, folders: tuple[Path, ...]) -> dict[str, Any]:
    return answer(question, specs.load(*folders))
