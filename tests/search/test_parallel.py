# pyright: basic
"""Searching side by side, in a program that has ideas of its own about being told to end."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from superopt.rewrite.rewriter import Rules
from superopt.search import parallel
from superopt.search.parallel import Task, explore_all
from tests.search.test_hunt import BOOK

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def a_program_that_does_not_end_when_told_to(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parallel, "usable_cores", lambda: 2)
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    yield
    signal.signal(signal.SIGTERM, before)


def searched(seconds: float, monkeypatch: pytest.MonkeyPatch, fails: bool = False) -> None:
    """Two searches that do nothing else; a fork inherits what is put in their place here."""

    def idle(*_):
        if fails:
            raise RuntimeError("no luck")
        time.sleep(seconds)
        return parallel.Explored((), 0, True)

    monkeypatch.setattr(parallel, "_explore", idle)
    tasks = [Task(None, lambda _: 0.0, seconds)] * 2  # pyright: ignore[reportArgumentType]
    explore_all(tasks, Rules([], BOOK.registry), None, 1.05, 10)  # pyright: ignore[reportArgumentType]


def ends_within(seconds: float, act) -> bool:
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def test_searches_end_in_a_program_that_hears_requests_to_end_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def often() -> None:
        for _ in range(20):
            searched(0.0, monkeypatch)

    assert ends_within(60, often)


def test_a_search_that_fails_ends_the_others_whatever_the_program_hears(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[BaseException] = []

    def failing() -> None:
        for _ in range(20):
            try:
                searched(0.0, monkeypatch, fails=True)
            except RuntimeError as error:
                told.append(error)

    assert ends_within(60, failing)
    assert len(told) == 20
