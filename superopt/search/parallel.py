"""Several regions searched side by side, in processes that share what the first one knows.

A search returns its candidates as steps told in names; here they are taken again, which is quick, and checks them.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkContext
from multiprocessing.pool import Pool
from typing import TypeAlias

from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules, Step, Taken
from superopt.runtime.cores import usable_cores
from superopt.search.candidate import Candidate
from superopt.search.explore import Explored, Limits, explore

POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Task:
    """A region to search, what its graphs cost, and how long it may take."""

    piece: Piece
    price: Callable[[Piece], float]
    seconds: float


_Words: TypeAlias = tuple[float, tuple[Step, ...]]
"""A candidate's cost and its steps."""


@dataclass(frozen=True)
class _Told:
    """What a process found, in words."""

    candidates: tuple[_Words, ...]
    seen: int
    exhausted: bool
    condensed: _Words | None


def explore_all(
    tasks: Sequence[Task],
    rules: Rules,
    rewriter: Rewriter,
    alpha: float,
    candidates: int,
    hurried: Callable[[], bool] = lambda: False,
) -> list[Explored]:
    """The candidates of each region, the region itself first; those seen so far from when on it is `hurried`."""
    workers = side_by_side(len(tasks))
    if workers < 2:
        return [_explore(task, rules, rewriter, alpha, candidates, hurried) for task in tasks]
    context = multiprocessing.get_context("fork")
    enough = context.RawValue("b", hurried())
    global _work

    def work(k: int) -> _Told:
        return _tell(_explore(tasks[k], rules, rewriter, alpha, candidates, lambda: bool(enough.value)))

    _work = work
    try:
        with _started(context, workers) as pool:
            answer = pool.map_async(_call, range(len(tasks)), chunksize=1)
            while not answer.ready():
                answer.wait(POLL_SECONDS)
                enough.value = hurried()
            told = answer.get()
            pool.close()
            pool.join()
    finally:
        _work = _nothing
    return [_retaken(task, found, rules, rewriter) for task, found in zip(tasks, told, strict=True)]


def side_by_side(regions: int) -> int:
    """How many of them are searched at a time."""
    return 1 if multiprocessing.current_process().daemon else max(1, min(usable_cores(), regions))


def _started(context: ForkContext, workers: int) -> Pool:
    """Processes that end when they are told to: what the program does when it is told so is not for them to do, and
    nobody may tell them before they know."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        return context.Pool(workers, _obey)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _obey() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _nothing(k: int) -> _Told:
    raise RuntimeError("no search is under way")


_work: Callable[[int], _Told] = _nothing
"""What a forked process does; it is there before the fork, so that nothing has to be sent."""


def _call(k: int) -> _Told:
    return _work(k)


def _explore(
    task: Task, rules: Rules, rewriter: Rewriter, alpha: float, candidates: int, hurried: Callable[[], bool]
) -> Explored:
    until = time.monotonic() + task.seconds
    limits = Limits(alpha, candidates, lambda: time.monotonic() > until or hurried())
    return explore(task.piece, rules, rewriter, task.price, limits)


def _tell(explored: Explored) -> _Told:
    condensed = None if explored.condensed is None else _words(explored.condensed)
    return _Told(tuple(map(_words, explored.candidates)), explored.seen, explored.exhausted, condensed)


def _words(candidate: Candidate) -> _Words:
    return candidate.cost, tuple(taken.step for taken in candidate.steps)


def _retaken(task: Task, told: _Told, rules: Rules, rewriter: Rewriter) -> Explored:
    again = _Again(task.piece, rules, rewriter)
    found = [again.taken(*words) for words in told.candidates]
    condensed = None if told.condensed is None else again.taken(*told.condensed)
    return Explored(tuple(c for c in found if c is not None), told.seen, told.exhausted, condensed)


class _Again:
    """Takes steps that are told; what several candidates begin with, once."""

    def __init__(self, start: Piece, rules: Rules, rewriter: Rewriter) -> None:
        self._start, self._rules, self._rewriter = start, rules, rewriter
        self._known: dict[tuple[int, ...], tuple[Taken, ...]] = {(): ()}
        self._numbers: dict[str, int] = {}

    def taken(self, cost: float, steps: Sequence[Step]) -> Candidate | None:
        taken: tuple[Taken, ...] = ()
        prefix: tuple[int, ...] = ()
        for step in steps:
            prefix = (*prefix, self._numbers.setdefault(str(step), len(self._numbers)))
            if prefix not in self._known:
                piece = taken[-1].after if taken else self._start
                match = self._rewriter.find(piece, self._rules.patterns[step.rule], step)
                if isinstance(match, str):
                    return None
                self._known[prefix] = (*taken, self._rewriter.take(piece, *match))
            taken = self._known[prefix]
        return Candidate(taken[-1].after if taken else self._start, cost, taken)
