"""Keeps freed memory from staying with the process.

glibc holds on to what large models leave behind: a closed session over 1 GB of embedded weights kept all of it,
and opening one took 1.5 times its size. With other C libraries these functions do nothing.
"""

from __future__ import annotations

import ctypes
import functools

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_BLOCK = 1 << 20


def give_back_free_memory() -> None:
    """Returns the free parts of the heap to the system."""
    trim = getattr(_libc(), "malloc_trim", None)
    if trim is not None:
        trim(0)


def map_large_blocks() -> None:
    """Makes every block over 1 MB its own mapping, gone when freed. For a process that opens large models."""
    mallopt = getattr(_libc(), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _BLOCK)


def share_one_heap() -> None:
    """Makes all threads take from one heap: each would keep what it once needed. For a process that runs for long."""
    mallopt = getattr(_libc(), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)


@functools.cache
def _libc() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):
        return None
