"""Where a model ended the process that opened it: from then on every model is opened, and run once, elsewhere first.

onnxruntime has operators and fusions that crash on some processors. A crash is no exception that could be caught; but a
process that dies in this one's place tells as much.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Lock
from typing import Any

from superopt.errors import CannotRun
from superopt.ir.tensor import Array
from superopt.runtime.deployment import Deployment

OPENER = (sys.executable, "-m", "superopt.runtime.opener")
CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGBUS})
"""What a process dies of by its own doing."""


@dataclass(frozen=True, eq=False)
class Opening:
    """What a session is opened with."""

    model: Path | bytes
    deployment: Deployment
    folder: Path | None
    weights: Mapping[str, Array]


@dataclass
class Elsewhere:
    """A process that opens models and answers that it did; another one where that ended it."""

    _lock: Lock = field(default_factory=Lock)
    _child: subprocess.Popen[bytes] | None = None
    _line: Connection | None = None
    _open: Opening | None = None

    def open(self, opening: Opening) -> None:
        """Raises `CannotRun` where it died of that; what else may be wrong is for the caller to find."""
        with self._lock:
            self._ask(opening, None, "on opening it")
            self._open = opening

    def run(self, opening: Opening, feeds: Mapping[str, Any]) -> None:
        with self._lock:
            if self._open is not opening:
                self._ask(opening, None, "on opening it")
                self._open = opening
            self._ask(None, feeds, "on running it")

    def _ask(self, opening: Opening | None, feeds: Mapping[str, Any] | None, when: str) -> None:
        line = self._line or self._start()
        try:
            line.send((opening, feeds))
            line.recv()
        except (EOFError, OSError):
            raise CannotRun(f"onnxruntime {self._end()} {when}") from None

    def _start(self) -> Connection:
        ours, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen([*OPENER, str(theirs.fileno())], pass_fds=(theirs.fileno(),))
        self._line = line = Connection(ours.detach())
        return line

    def _end(self) -> str:
        """How it died."""
        assert self._child is not None
        assert self._line is not None
        self._line.close()
        code = self._child.wait()
        self._child = self._line = self._open = None
        with contextlib.suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"


_elsewhere: Elsewhere | None = None


def be_careful() -> None:
    """For the rest of this process."""
    global _elsewhere
    _elsewhere = _elsewhere or Elsewhere()


def elsewhere() -> Elsewhere | None:
    """Where models are tried out before they are opened here, if that is asked for."""
    return _elsewhere
