"""Whose turn it is on a device: several processes may work for one, and only one of them at a time runs models there.

A lock on a file is the turn; the kernel frees it when its holder dies, however that happens. Whoever wants it stands
at a second lock first, the door, and holds that until it has the turn: so nobody who gives the turn back and wants it
again comes before one who waits.

The turn is held for a burst of work that belongs together, such as two sittings or one race. Who has it and is not
going to use the device for a while steps `aside`. Time spent waiting is nobody's fault and counts against no budget: by
`clock`, and by a clock that is `paused`, it did not pass.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

POLL_SECONDS = 0.02
TELL_SECONDS = 1.0


class Turn:
    def __init__(self, file: Path | None = None, tell: Callable[[], None] = lambda: None) -> None:
        """Without a file nobody else is there, and it is always our turn. `tell` is called now and then while we
        wait."""
        self._file, self._tell = file, tell
        self._held: IO[bytes] | None = None
        self.waited = 0.0
        """Seconds so far."""

    def clock(self) -> float:
        """Seconds, those spent waiting left out."""
        return time.monotonic() - self.waited

    def paused(self, clock: Callable[[], float]) -> Callable[[], float]:
        """The same of another clock."""
        return clock if self._file is None else lambda: clock() - self.waited

    @contextmanager
    def taken(self) -> Generator[None]:
        """Wait for the turn, and have it in here."""
        if self._file is None or self._held is not None:
            yield
            return
        with open(self._file, "ab") as turn:
            self._hold(turn)
            try:
                yield
            finally:
                self._held = None

    @contextmanager
    def aside(self) -> Generator[None]:
        """Give the turn away in here, and wait for it again; where we have none, nothing happens."""
        turn, self._held = self._held, None
        if turn is None:
            yield
            return
        fcntl.flock(turn, fcntl.LOCK_UN)
        try:
            yield
        finally:
            self._hold(turn)

    def _hold(self, turn: IO[bytes]) -> None:
        assert self._file is not None
        with open(self._file.with_name(f"{self._file.name}.door"), "ab") as door:
            self._wait_for(door)
            self._wait_for(turn)
        self._held = turn

    def _wait_for(self, lock: IO[bytes]) -> None:
        began, before, told = time.monotonic(), self.waited, 0.0
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(POLL_SECONDS)
            waiting = time.monotonic() - began
            self.waited = before + waiting
            if waiting - told >= TELL_SECONDS:
                told = waiting
                self._tell()


ALONE = Turn()
