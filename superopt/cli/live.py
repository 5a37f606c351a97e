"""What is happening now: one living line on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from superopt.engine.job import Stage

PLAIN_EVERY = 10.0
"""Off a terminal a stage is announced once, and again at most this often while its detail moves."""


class Live:
    def __init__(self, console: Console, quiet: bool) -> None:
        self._console, self._quiet = console, quiet
        self._status: Status | None = None
        self._started = time.monotonic()
        self._stage, self._announced = "", 0.0

    def __enter__(self) -> Self:
        if not self._quiet and self._console.is_terminal:
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, stage: Stage) -> None:
        if self._quiet:
            return
        now = time.monotonic() - self._started
        text = f"{stage.stage}{': ' if stage.detail else ''}{stage.detail}"
        if stage.speedup is not None:
            text += f" (best so far {stage.speedup:.2f}×, {stage.basis})"
        if self._status is not None:
            self._status.update(f"{escape(text)} [dim]{now:.0f} s[/dim]")
        elif stage.stage != self._stage or now - self._announced >= PLAIN_EVERY:
            self._console.print(f"[{now:6.1f} s] {text}", highlight=False, markup=False, soft_wrap=True)
            self._announced = now
        self._stage = stage.stage
