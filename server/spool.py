"""Bytes on their way in: written to a file of their own as they come, counted and hashed, never held in memory."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from server.problems import Problem

ABANDONED = 86_400.0
"""Seconds after which a file that nobody has written to belongs to a process that was killed."""


FULL = (errno.ENOSPC, errno.EDQUOT)
"""What a disk without room says."""
RESERVE = 256 << 20
"""Bytes of the disk that uploads leave alone: jobs under way, and a database that is to forget old ones, need some."""


def not_stored(error: OSError) -> Problem:
    """507 where there is no room; 503, to be tried again, where the disk or the store does not work at all."""
    detail = f"the upload cannot be stored: {error.strerror or type(error).__name__}"
    return Problem(507, detail) if error.errno in FULL else Problem(503, detail, headers={"Retry-After": "5"})


@dataclass(frozen=True)
class Spooled:
    """A whole file, on disk, that nobody else knows of yet."""

    path: Path
    digest: str
    size: int

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)


@dataclass
class Allowance:
    """Bytes that may still come; the parts of one upload share it."""

    limit: int
    left: int

    @classmethod
    def of(cls, limit: int) -> Self:
        return cls(limit, limit)

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise Problem(413, f"the upload is larger than {self.limit >> 20} MiB", limit_bytes=self.limit)


class Sink:
    """One file being received."""

    def __init__(self, folder: Path, allowance: Allowance) -> None:
        self._path, self._allowance = folder / f"{uuid.uuid4().hex}.part", allowance
        self._hash, self._size = hashlib.sha256(), 0
        try:
            self._file = open(self._path, "xb")  # noqa: SIM115 - closed by `finish` or `discard`
        except OSError as error:
            raise not_stored(error) from None

    def write(self, data: bytes) -> None:
        self._allowance.take(len(data))
        self._hash.update(data)
        self._size += len(data)
        try:
            if shutil.disk_usage(self._path.parent).free < RESERVE + len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._file.write(data)
        except OSError as error:
            raise not_stored(error) from None

    def finish(self) -> Spooled:
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        except OSError as error:
            raise not_stored(error) from None
        return Spooled(self._path, self._hash.hexdigest(), self._size)

    def discard(self) -> None:
        with contextlib.suppress(OSError):  # where there is no room for what it still holds
            self._file.close()
        self._path.unlink(missing_ok=True)


def hashed(path: Path, look: Callable[[], None] = lambda: None) -> Spooled:
    """A file that a job of ours has written; `look` is called all the while, and may raise to end it."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            size += len(chunk)
            look()
        os.fsync(file.fileno())
    return Spooled(path, digest.hexdigest(), size)


def sweep(folder: Path) -> int:
    """Remove what killed processes left behind."""
    removed = 0
    for path in folder.glob("*.part"):
        try:
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()
                removed += 1
        except FileNotFoundError:
            continue
    return removed
