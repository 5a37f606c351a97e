"""`superopt serve` as processes of their own, in a folder of their own; what they hold in memory and open."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

START_SECONDS, STOP_SECONDS = 600.0, 60.0
KEPT = ("listening", "started", "ended", "ready", "Application startup complete.")


class Serving:
    """The log is read as it comes: it says where the service listens, and which process is which."""

    def __init__(self, folder: Path, **settings: object) -> None:
        own = {"data": folder, "port": 0, **settings}
        flags = [word for name, value in own.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SUPEROPT_")}
        self.folder = folder
        self.lines: list[dict[str, Any]] = []
        self.trouble: list[str] = []
        """What is no line of the log, and lines of level error."""
        command = [sys.executable, "-m", "superopt", "serve", *flags]
        self._process = subprocess.Popen(command, env=kept, stderr=subprocess.PIPE, text=True)
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def __enter__(self) -> Self:
        wait_for(lambda: bool(self.logged("Application startup complete.")) or self._process.poll() is not None)
        if self._process.poll() is not None:
            raise RuntimeError("\n".join(self.trouble))
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reading.join(STOP_SECONDS)

    @property
    def url(self) -> str:
        return self.logged("listening")[0]["url"]

    def logged(self, message: str) -> list[dict[str, Any]]:
        return [line for line in list(self.lines) if line["message"] == message]

    def pid(self, post: str) -> int:
        """Of the process that holds a post now: `api`, or `worker …`."""
        return [line["pid"] for line in self.logged("started") if line["post"].startswith(post)][-1]

    def deaths(self) -> int:
        """Processes of the service that had to be started again."""
        return len([line for line in self.logged("ended") if "again_in" in line])

    def _read(self) -> None:
        assert self._process.stderr is not None
        for text in self._process.stderr:
            line: dict[str, Any] = {}
            with contextlib.suppress(ValueError):
                line = json.loads(text)
            if line.get("message") in KEPT:
                self.lines.append(line)
            if not line or line["level"] == "error":
                self.trouble.append(text.strip())


def wait_for(true: Callable[[], bool], seconds: float = START_SECONDS, every: float = 0.05) -> None:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise TimeoutError(f"it did not happen within {seconds:g} s")
        time.sleep(every)


def resident_mib(pid: int) -> float:
    """Anonymous memory alone: pages of mapped files come and go as the kernel likes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/{pid}/status has no RssAnon")


def open_files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def slope(points: list[tuple[float, float]]) -> float:
    """Of the line through the points, by least squares."""
    if len(points) < 2:
        return 0.0
    x, y = (sum(p[k] for p in points) / len(points) for k in (0, 1))
    spread = sum((p[0] - x) ** 2 for p in points)
    return sum((p[0] - x) * (p[1] - y) for p in points) / spread if spread else 0.0
