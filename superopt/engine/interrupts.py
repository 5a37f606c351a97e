"""Ctrl-C: heard first by whoever can end well, and never in the middle of a move."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def asking_first(ask: Callable[[], bool]) -> Generator[None]:
    """Ctrl-C calls `ask`, and interrupts as ever only where that answers False.

    A program that hears Ctrl-C in a way of its own, or not at all, goes on to do so. Requests to terminate interrupt.
    """
    if threading.current_thread() is not threading.main_thread() or not _is_ordinary():
        yield
        return

    def hear(number: int, frame: FrameType | None) -> None:
        if not ask():
            signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_ordinary() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


@contextmanager
def held_back() -> Generator[None]:
    """What would interrupt waits until the end; meant for a few quick steps that belong together."""
    if threading.current_thread() is not threading.main_thread():  # nothing interrupts another thread
        yield
        return
    heard: list[int] = []
    before = {number: signal.getsignal(number) for number in ENDING}
    for number in ENDING:
        signal.signal(number, lambda number, _: heard.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: not set from Python
        for number in heard[:1]:
            signal.raise_signal(number)
