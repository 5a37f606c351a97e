"""Large arrays piece by piece, several pieces at once: numpy lets other threads run while it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from superopt.ir.tensor import Array
from superopt.runtime.cores import usable_cores

BLOCK = 1 << 20
"""Elements of a piece. A larger output is compared, and has its scale taken, piece by piece."""
AT_ONCE = 8
"""Pieces, at most: each takes a dozen times its memory."""

T = TypeVar("T")


def blocks(array: Array) -> list[Array]:
    """Pieces that fit in memory many times over, cut along the longest axis."""
    if array.size <= BLOCK:
        return [array]
    return np.array_split(array, -(-array.size // BLOCK), axis=int(np.argmax(array.shape)))


def on_each(work: Callable[..., T], *pieces: Iterable[object]) -> list[T]:
    """`map`, in order, on as many cores as there are; where something is off, it is numpy that stays silent."""

    def quietly(*given: object) -> T:
        with np.errstate(all="ignore"):  # is a thread's own
            return work(*given)

    taken = list(zip(*pieces, strict=True))
    if len(taken) < 2:
        return [quietly(*given) for given in taken]
    with ThreadPoolExecutor(min(len(taken), usable_cores(), AT_ONCE)) as pool:
        return list(pool.map(quietly, *zip(*taken, strict=True)))
