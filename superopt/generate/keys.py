"""Fingerprints of the last level, in memory as far as they may be and on disk beyond: eight bytes for each graph."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import IO

import numpy as np

from superopt.generate.residues import Array

SORTING = 4
"""Times the bytes of fingerprints that finding the equal ones among them takes."""


class Keys:
    """Portions of fingerprints, in the order in which they came."""

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._pieces: list[Array] = []
        self._lengths: list[int] = []
        self._file: IO[bytes] | None = None

    @property
    def count(self) -> int:
        return sum(self._lengths)

    def append(self, keys: Array) -> None:
        self._lengths.append(len(keys))
        if self._file is not None:
            self._file.write(keys.tobytes())
            return
        self._pieces.append(keys)
        if self.count * 8 * SORTING > self._memory:
            self._file = tempfile.TemporaryFile(prefix="superopt-")  # noqa: SIM115
            for piece in self._pieces:
                self._file.write(piece.tobytes())
            self._pieces = []

    def __iter__(self) -> Iterator[Array]:
        if self._file is None:
            yield from self._pieces
            return
        self._file.seek(0)
        for length in self._lengths:
            yield np.frombuffer(self._file.read(8 * length), np.uint64)

    def meeting(self, known: Array) -> Array:
        """Fingerprints that occur twice, or are among the known; in order. By shards that fit into the memory."""
        shards = 1
        while self.count * 8 * SORTING > self._memory * shards and shards < 1 << 16:
            shards *= 2
        shift = np.uint64(64 - shards.bit_length() + 1)
        found = [self._in_shard(known, k, shift if shards > 1 else None) for k in range(shards)]
        return np.concatenate(found) if found else known[:0]

    def _in_shard(self, known: Array, shard: int, shift: np.uint64 | None) -> Array:
        def inside(keys: Array) -> Array:
            return keys if shift is None else keys[(keys >> shift) == shard]

        together = np.concatenate([np.empty(0, np.uint64), *(inside(piece) for piece in self)])
        together.sort()
        twice = together[1:][together[1:] == together[:-1]]
        wanted = inside(known)
        return np.unique(np.concatenate([twice, wanted[among(wanted, together)]]))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def among(keys: Array, ordered: Array) -> Array:
    """Which of the keys are in an ordered array."""
    if not len(ordered):
        return np.zeros(len(keys), bool)
    place = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return ordered[place] == keys
