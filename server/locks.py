"""One worker for each place on a device: whoever holds the file's lock. The kernel frees it when that one dies."""

from __future__ import annotations

import fcntl
import os
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

RETRY_SECONDS = 0.5


def lock_file(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{re.sub('[^a-z0-9]', '-', name)}.lock"


class DeviceLock:
    def __init__(self, folder: Path, name: str) -> None:
        self.path = lock_file(folder, name)
        self._file: BinaryIO | None = None

    def acquire(self, wait: Callable[[float], bool]) -> bool:
        """Wait for the lock; False where `wait`, called with seconds, says that it is time to stop."""
        file = open(self.path, "a+b")  # noqa: SIM115 - held as long as the lock
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if wait(RETRY_SECONDS):
                    file.close()
                    return False
                continue
            self._file = file
            return True

    def name(self) -> str:
        """The same for each holder in turn, and another one for every other lock."""
        assert self._file is not None
        self._file.seek(0)
        known = self._file.read().decode("ascii", "replace").strip()
        if not known:
            known = uuid.uuid4().hex[:12]
            self._file.write(known.encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        return known

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
