"""Where a model ended the process that opened it: from then on every model is opened, and run once, elsewhere first.

onnxruntime has operators and fusions that crash on some processors. A crash is no exception that could be caught; but a
process that dies in this one's place tells as much.
"""

from __future__ import annotations

import contextlib
import os
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
from superopt.runtime.crash import CRASHES
from superopt.runtime.deployment import Deployment

OPENER = (sys.executable, "-m", "superopt.runtime.opener")


class Undecided(CannotRun):
    """It took too long, or was ended by somebody else: that says nothing of the model."""


@dataclass(frozen=True, eq=False)
class Opening:
    """What a session is opened with."""

    model: Path | bytes
    deployment: Deployment
    folder: Path | None
    weights: Mapping[str, Array]


@dataclass
class Elsewhere:
    """A process that opens models, runs them, closes them and answers that it did; another one where that ended it."""

    patience: float | None = None
    """Seconds after which it is ended, where that is asked for."""
    _lock: Lock = field(default_factory=Lock)
    _child: subprocess.Popen[bytes] | None = None
    _line: Connection | None = None

    def open(self, opening: Opening) -> None:
        """Raises `CannotRun` where it died of that; what else may be wrong is for the caller to find."""
        self._ask("open", opening, None)

    def run(self, opening: Opening, feeds: Mapping[str, Any]) -> None:
        self._ask("run", opening, feeds)

    def close(self) -> None:
        """Ends the process; another one begins where it is asked again."""
        with self._lock:
            if self._child is not None:
                self._kill()

    def _kill(self) -> None:
        assert self._child is not None
        self._child.kill()
        self._end()

    def _ask(self, what: str, opening: Opening, feeds: Mapping[str, Any] | None) -> None:
        with self._lock:
            try:
                line = self._line or self._start()
                line.send((opening, feeds))
                if self.patience is not None and not line.poll(self.patience):
                    raise Undecided(f"it took longer than {self.patience:g} s")
                line.recv()
            except (EOFError, OSError) as error:
                told = f"onnxruntime cannot {what} the model"
                if self._line is None:
                    raise CannotRun(f"{told}: {error}") from None
                how, is_crash = self._end()
                if not is_crash:
                    raise Undecided(f"{told}: {how}, perhaps for being out of memory") from None
                raise CannotRun(f"{told}: {how}") from None
            except BaseException:  # an answer that comes late would be taken for the next one's
                if self._child is not None:
                    self._kill()
                raise

    def _start(self) -> Connection:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            own = str(theirs.fileno())
            self._child = subprocess.Popen([*OPENER, own, str(os.getpid())], pass_fds=(theirs.fileno(),))
            self._line = line = Connection(ours.detach())
        return line

    def _end(self) -> tuple[str, bool]:
        """How it died, and whether by its own doing: where it was not, it may live another time."""
        assert self._child is not None
        assert self._line is not None
        self._line.close()
        code = self._child.wait()
        self._child = self._line = None
        how = f"it ended with exit code {code}"
        with contextlib.suppress(ValueError):
            how = f"it was killed by {signal.Signals(-code).name}"
        return how, -code in CRASHES


_elsewhere: Elsewhere | None = None


def be_careful() -> None:
    """For the rest of this process."""
    global _elsewhere
    _elsewhere = _elsewhere or Elsewhere()


def elsewhere() -> Elsewhere | None:
    """Where models are tried out before they are opened here, if that is asked for."""
    return _elsewhere
