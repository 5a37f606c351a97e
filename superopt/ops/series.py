"""Whole numbers one after the other, each by its place: the indices of a Gather that no rule could write out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from superopt.ops.index import Index

MOST = 1 << 24
"""Entries that are written out."""


@dataclass(frozen=True)
class Series:
    """So many numbers; `entry` is the one at a place, or those at all places of an array."""

    size: Index
    entry: Callable[[Any], Any]

    def values(self) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """All of them; None where they depend on a size that is not known, or are too many."""
        if not isinstance(self.size, int) or self.size > MOST:
            return None
        found = np.broadcast_to(np.asarray(self.entry(np.arange(self.size))), (self.size,))
        return found.astype(np.int64) if found.dtype.kind == "i" else None
