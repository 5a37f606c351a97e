"""Jobs side by side on one machine, each on cores of its own: nobody's launches wait for another's threads."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate
from queue import SimpleQueue
from typing import Generic, TypeVar

Task = TypeVar("Task")
_here = threading.local()


def pinned() -> tuple[str, ...]:
    """What to put before a command of this thread's, so that it keeps to this thread's cores."""
    cores: tuple[int, ...] = getattr(_here, "cores", ())
    return ("taskset", "-c", ",".join(map(str, cores))) if cores and shutil.which("taskset") else ()


def shares(cores: Iterable[int], weights: Sequence[int]) -> list[tuple[int, ...]]:
    """A part of the cores for each, neighbours together, so large as its weight asks for; nobody is bound where there
    are too few. What the weights leave over, nobody has."""
    found = sorted(cores)
    sizes = [len(found) // sum(weights) * weight for weight in weights]
    return [tuple(found[end - size : end]) for end, size in zip(accumulate(sizes), sizes, strict=True)]


@dataclass(frozen=True)
class Kind(Generic[Task]):
    """Tasks in their order, so many at a time, each on so many cores for one core of a task of weight 1."""

    tasks: Iterable[Task]
    most: int
    weight: int = 1


def side_by_side(kinds: Sequence[Kind[Task]], work: Callable[[Task], None]) -> None:
    weights = [kind.weight for kind in kinds for _ in range(kind.most)]
    parts = iter(shares(os.sched_getaffinity(0), weights) if len(weights) > 1 else [()])

    def settle(free: SimpleQueue[tuple[int, ...]]) -> None:
        _here.cores = free.get()

    with ExitStack() as stack:
        pools: list[ThreadPoolExecutor] = []
        for kind in kinds:
            free: SimpleQueue[tuple[int, ...]] = SimpleQueue()
            for _ in range(kind.most):
                free.put(next(parts))
            pools.append(stack.enter_context(ThreadPoolExecutor(kind.most, initializer=settle, initargs=(free,))))
        jobs = [pool.submit(work, task) for pool, kind in zip(pools, kinds, strict=True) for task in kind.tasks]
        stack.callback(lambda: [job.cancel() for job in jobs])  # those that have not begun, where one fails
        for job in as_completed(jobs):
            job.result()
