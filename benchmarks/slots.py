"""Jobs side by side on one machine, each on cores of its own: nobody's launches wait for another's threads."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
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


def side_by_side(tasks: Iterable[Task], count: int, work: Callable[[Task], None]) -> None:
    """In their order, so many at a time."""
    free: SimpleQueue[tuple[int, ...]] = SimpleQueue()
    for part in shares(os.sched_getaffinity(0), count) if count > 1 else [()]:
        free.put(part)

    def settle() -> None:
        _here.cores = free.get()

    with ThreadPoolExecutor(count, initializer=settle) as pool:
        list(pool.map(work, tasks))
