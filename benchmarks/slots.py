"""Jobs side by side on one machine, each on cores of its own: nobody's launches wait for another's threads."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from queue import SimpleQueue
from typing import TypeVar

Task = TypeVar("Task")
_here = threading.local()


def pinned() -> tuple[str, ...]:
    """What to put before a command of this thread's, so that it keeps to this thread's cores."""
    cores: tuple[int, ...] = getattr(_here, "cores", ())
    return ("taskset", "-c", ",".join(map(str, cores))) if cores and shutil.which("taskset") else ()


def shares(cores: Iterable[int], count: int) -> list[tuple[int, ...]]:
    """So many equal parts of the cores, neighbours together; nobody is bound where there are too few."""
    found = sorted(cores)
    size = len(found) // count
    return [tuple(found[i * size : (i + 1) * size]) for i in range(count)]


def side_by_side(kinds: Sequence[tuple[Iterable[Task], int]], work: Callable[[Task], None]) -> None:
    """The tasks of each kind in their order, so many of that kind at a time."""
    count = sum(most for _, most in kinds)
    free: SimpleQueue[tuple[int, ...]] = SimpleQueue()
    for part in shares(os.sched_getaffinity(0), count) if count > 1 else [()]:
        free.put(part)

    def settle() -> None:
        _here.cores = free.get()

    with ExitStack() as stack:
        pools = [stack.enter_context(ThreadPoolExecutor(most, initializer=settle)) for _, most in kinds]
        jobs = [pool.submit(work, task) for pool, (tasks, _) in zip(pools, kinds, strict=True) for task in tasks]
        stack.callback(lambda: [job.cancel() for job in jobs])  # those that have not begun, where one fails
        for job in as_completed(jobs):
            job.result()
