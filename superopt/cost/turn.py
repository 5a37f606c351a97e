"""Whose turn it is on a device: several processes may work for one, and only one of them at a time measures there.

A lock on a file is the turn; the kernel frees it when its holder dies, however that happens. Of those who want it the
one that came first goes first, also if it had the turn just now: so runs end one after the other, and those behind use
the device while the first does something else. Who had the device for a minute, and again for three, goes behind those
who had it less: nobody can tell beforehand which runs are long. Who has waited for two minutes goes before all.

The turn is held for a burst of work that belongs together, such as two sittings or one race. Who has it and is not
going to use the device for a while steps `aside`. Time spent waiting is nobody's fault and counts against no budget: by
`clock`, and by a clock that is `paused`, it did not pass.
"""

from __future__ import annotations

import fcntl
import os
import struct
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

POLL_SECONDS = 0.02
TELL_SECONDS = 1.0
LONG_SECONDS = 120.0
"""From here on who waits goes first."""
SHARES = (60.0, 180.0)
"""Seconds on the device after which others go before us."""
_BEHIND = 1 << 61
"""More than nanoseconds since 1970; three times that are a byte's number still."""
_FLOCK = "hhqqi0q"  # type, whence, start, length, process: struct flock


class Turn:
    def __init__(self, file: Path | None = None, tell: Callable[[], None] = lambda: None) -> None:
        """Without a file nobody else is there, and it is always our turn. `tell` is called now and then while we
        wait."""
        self._file, self._tell, self._came = file, tell, time.time_ns()
        self._held: IO[bytes] | None = None
        self._since = self._used = 0.0
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
                self._given_back()

    @contextmanager
    def aside(self) -> Generator[None]:
        """Give the turn away in here, and wait for it again, unless something goes wrong: who is on the way out does
        not wait. Where we have no turn, nothing happens."""
        turn = self._held
        if turn is None:
            yield
            return
        self._given_back()
        fcntl.flock(turn, fcntl.LOCK_UN)
        yield
        self._hold(turn)

    def _hold(self, turn: IO[bytes]) -> None:
        assert self._file is not None
        place = self._came + _BEHIND * sum(self._used >= share for share in SHARES)
        with _Queue(self._file.with_name(f"{self._file.name}.queue"), place) as queue:
            self._wait_for(turn, queue)
        self._held, self._since = turn, time.monotonic()

    def _given_back(self) -> None:
        if self._held is not None:
            self._held = None
            self._used += time.monotonic() - self._since

    def _wait_for(self, turn: IO[bytes], queue: _Queue) -> None:
        began, before, told, is_long = time.monotonic(), self.waited, 0.0, False
        while not (queue.is_first and _is_free(turn)):
            time.sleep(POLL_SECONDS)
            waiting = time.monotonic() - began
            self.waited = before + waiting
            if waiting >= LONG_SECONDS and not is_long:
                queue.step_forward()
                is_long = True
            if waiting - told >= TELL_SECONDS:
                told = waiting
                self._tell()


class _Queue:
    """Who waits holds a lock on one byte of a file, which nothing is written to: the one whose number is the time, in
    nanoseconds, at which it came, or higher. So whether anybody is before us is a question to the kernel."""

    def __init__(self, file: Path, place: int) -> None:
        self._handle, self._place = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), place
        self._stand()

    def __enter__(self) -> _Queue:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)  # and the lock with it

    @property
    def is_first(self) -> bool:
        found = self._lock(fcntl.F_OFD_GETLK, fcntl.F_WRLCK, 0, self._place)
        return struct.unpack(_FLOCK, found)[0] == fcntl.F_UNLCK

    def step_forward(self) -> None:
        """Before all that are there by their nanoseconds: to the byte that is a time in microseconds."""
        self._place = time.time_ns() // 1000
        self._stand()

    def _stand(self) -> None:
        """Where we belong, or at the next place that is free."""
        while True:
            try:
                self._lock(fcntl.F_OFD_SETLK, fcntl.F_WRLCK, self._place, 1)
                return
            except BlockingIOError:
                self._place += 1

    def _lock(self, command: int, kind: int, start: int, length: int) -> bytes:
        return fcntl.fcntl(self._handle, command, struct.pack(_FLOCK, kind, os.SEEK_SET, start, length, 0))


def _is_free(turn: IO[bytes]) -> bool:
    """Then it is ours."""
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


ALONE = Turn()
