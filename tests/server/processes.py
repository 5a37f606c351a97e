"""The service as real processes, and what a test needs to know of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from server.children import ROOT
from server.settings import Settings
from tests.server.shop import until


class Running:
    """A supervisor with its children; its log is read as it comes."""

    def __init__(self, settings: Settings, command: Sequence[str]) -> None:
        environment = {**os.environ, **settings.as_environment(), "PYTHONPATH": str(ROOT)}
        self.lines: list[dict[str, Any]] = []
        self.noise: list[str] = []
        self.killed_early = {"api": 0, "worker": 0}
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __enter__(self) -> Self:
        until(lambda: bool(self.logged("listening")) or self.process.poll() is not None, 900.0)
        assert self.process.poll() is None, self.noise
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(300)
        finally:
            if self.process.poll() is None:
                self.process.kill()
            self._reader.join(300)
            assert self.process.stderr is not None
            self.process.stderr.close()

    @property
    def url(self) -> str:
        return self.logged("listening")[0]["url"]

    def logged(self, message: str) -> list[dict[str, Any]]:
        return [line for line in list(self.lines) if line.get("message") == message]

    def pid(self, post: str) -> int | None:
        """Of the process that holds a post now."""
        started = [line["pid"] for line in self.logged("started") if line["post"].startswith(post)]
        return started[-1] if started and is_alive(started[-1]) else None

    def is_up(self, post: str) -> bool:
        """Whether the process that holds a post now has come to do its work."""
        ready = {"api": "Application startup complete.", "worker": "ready"}[post]
        started = [line for line in self.logged("started") if line["post"].startswith(post)]
        return self.pid(post) is not None and len(self.logged(ready)) >= len(started) - self.killed_early[post]

    def runner(self) -> int | None:
        """The process of the job under way."""
        worker = self.pid("worker")
        children = [] if worker is None else children_of(worker)
        return children[0] if children else None

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with contextlib.suppress(ValueError):
                self.lines.append(json.loads(line))
                continue
            self.noise.append(line)


def kill(pid: int) -> bool:
    assert pid > 0, "zero would be everybody in our group"
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == pid and fields[0] != "Z":
                    found.append(int(folder.name))
    return found
