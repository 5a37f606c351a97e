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

from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules, Step, Taken
from superopt.runtime.cores import usable_cores
from superopt.search.explore import Candidate, Explored, Limits, explore

POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Task:
    """A region to search, what its graphs cost, and how long it may take."""

    piece: Piece
    price: Callable[[Piece], float]
    seconds: float


@dataclass(frozen=True)
class _Told:
    """What a process found, in words."""

    candidates: tuple[tuple[float, tuple[Step, ...]], ...]
    seen: int
    exhausted: bool


def explore_all(
    tasks: Sequence[Task],
    rules: Rules,
    rewriter: Rewriter,
    alpha: float,
    candidates: int,
    hurried: Callable[[], bool] = lambda: False,
) -> list[Explored]:
    """The candidates of each region, the region itself first; those seen so far from when on it is `hurried`."""
    workers = min(usable_cores(), len(tasks))
    if workers < 2 or multiprocessing.current_process().daemon:
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
    found = tuple((c.cost, tuple(taken.step for taken in c.steps)) for c in explored.candidates)
    return _Told(found, explored.seen, explored.exhausted)


def _retaken(task: Task, told: _Told, rules: Rules, rewriter: Rewriter) -> Explored:
    known: dict[tuple[int, ...], tuple[Taken, ...]] = {(): ()}
    numbers: dict[str, int] = {}
    found: list[Candidate] = []
    for cost, steps in told.candidates:
        taken: tuple[Taken, ...] | None = ()
        prefix: tuple[int, ...] = ()
        for step in steps:
            prefix = (*prefix, numbers.setdefault(str(step), len(numbers)))
            if prefix not in known:
                piece = taken[-1].after if taken else task.piece
                match = rewriter.find(piece, rules.patterns[step.rule], step)
                if isinstance(match, str):
                    taken = None
                    break
                known[prefix] = (*taken, rewriter.take(piece, *match))
            taken = known[prefix]
        if taken is not None:
            found.append(Candidate(taken[-1].after if taken else task.piece, cost, taken))
    return Explored(tuple(found), told.seen, told.exhausted)
