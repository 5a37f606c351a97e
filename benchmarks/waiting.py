"""A step that has done its first part and waits, with all that it loaded, to be told to go on: its second part is then
timed alone, and nothing is loaded or compiled twice."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.commandline import TIMED_OUT, Done, end

GLANCE = 0.05  # seconds between two looks


class Gate:
    """The worker's side: a file says that it is ready, another that it may go on."""

    def __init__(self, folder: Path) -> None:
        self._ready, self._open = folder / "ready", folder / "open"
        self._opener = int((folder / "opener").read_text())

    def wait(self) -> None:
        """Until it is opened; ends with whoever would open it, who may be gone already."""
        self._ready.touch()
        while not self._open.exists():
            if os.getppid() != self._opener:
                raise SystemExit("nobody is left to wait for")
            time.sleep(GLANCE)


class Waiting:
    """The other side. `command` is given the files of its task and of its answer, and the folder of its gate."""

    def __init__(self, command: Sequence[str | Path], task: dict[str, Any], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        self.folder, self._answer, self._log = folder, folder / "answer.json", folder / "log"
        (folder / "opener").write_text(str(os.getpid()))
        asked = folder / "task.json"
        asked.write_text(json.dumps({**task, "gate": str(folder)}))
        words = [str(word) for word in (*command, asked, self._answer)]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)

    def until_ready(self, left: Callable[[], float]) -> Done | None:
        """How it ended before it was ready, if it did; when nothing is left of its seconds it is stopped."""
        started = time.monotonic()
        while not (self.folder / "ready").exists():
            if self._process.poll() is not None:
                return self._done()
            if left() <= 0:
                return self._stopped(time.monotonic() - started)
            time.sleep(GLANCE)
        return None

    def finish(self, seconds: float) -> tuple[Done, dict[str, Any] | None]:
        """How it ended, and what it answered."""
        (self.folder / "open").touch()
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return self._stopped(seconds), None
        return self._done(), json.loads(self._answer.read_text()) if not code and self._answer.exists() else None

    def _stopped(self, seconds: float) -> Done:
        self.dismiss()
        return Done(TIMED_OUT, f"stopped after {seconds:.0f} s")

    def _done(self) -> Done:
        return Done(self._process.returncode, self._log.read_text(errors="replace"))

    def dismiss(self) -> None:
        end(self._process)

    @staticmethod
    def dismiss_all(those: Sequence[Waiting]) -> None:
        """At once: each takes a while to give back what it has on a device."""
        end(*(waiting._process for waiting in those))
