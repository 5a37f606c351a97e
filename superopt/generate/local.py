"""Fingerprints worked out by several processes of this machine, in the order of the work whoever does it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

from superopt.generate.enumerate import alone, fingerprints
from superopt.generate.residues import Array
from superopt.generate.table import Table
from superopt.generate.work import Work

FEW = 1 << 16
"""Combinations that are not worth starting processes for."""
TOGETHER = 64
"""Portions in one message, at most."""

_shared: list[Table] = []
"""What forked processes find here is as it was when they were started."""


def local(workers: int) -> Callable[[Table, Sequence[Work], Sequence[int]], Iterator[Array]]:
    """Spread work over processes; with one, over none."""

    def spread(table: Table, works: Sequence[Work], worlds: Sequence[int]) -> Iterator[Array]:
        if workers == 1 or sum(w.stop - w.start for w in works) < FEW:
            yield from alone(table, works, worlds)
            return
        _shared[:] = [table]
        try:
            with ProcessPoolExecutor(workers, multiprocessing.get_context("fork")) as pool:
                for found in pool.map(_together, batches(works), [tuple(worlds)] * len(works)):
                    yield from found
        finally:
            _shared.clear()

    return spread


def batches(works: Sequence[Work]) -> list[tuple[Work, ...]]:
    """Neighbours together, until they are worth a message."""
    found: list[list[Work]] = []
    room = 0
    for work in works:
        count = work.stop - work.start
        if not found or room < count or len(found[-1]) == TOGETHER:
            found.append([])
            room = FEW
        found[-1].append(work)
        room -= count
    return [tuple(batch) for batch in found]


def _together(works: tuple[Work, ...], worlds: tuple[int, ...]) -> list[Array]:
    return [fingerprints(_shared[0], work, worlds) for work in works]
