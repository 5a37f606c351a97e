"""Times models against each other on the device they are meant for."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from superopt.cost.contest import Contest, Method, Progress
from superopt.cost.result import Comparison
from superopt.cost.sitting import Bench, Clock, Runner
from superopt.cost.turn import ALONE, Turn
from superopt.errors import BadOption, CannotRun
from superopt.runtime.deployment import Deployment
from superopt.runtime.facts import gpu_memory
from superopt.runtime.session import Session
from superopt.runtime.values import Value

# Raise it whenever times measured before and after a change to this package cannot be compared.
METHOD_VERSION = 1
TOGETHER_UP_TO = 1 << 30
"""Bytes of weights that are open at once; of a GPU an eighth of its memory, if that is more: they are nowhere else."""
_GPU_SHARE = 8
_WARM_UP_SHARE = 0.05


@dataclass(frozen=True)
class Subject:
    """A model as it would be deployed. `size` is what its weights take, external data included; without it the size of
    the model itself counts."""

    name: str
    model: Path | bytes
    deployment: Deployment
    folder: Path | None = None
    size: int | None = None

    @property
    def bytes(self) -> int:
        if self.size is not None:
            return self.size
        return self.model.stat().st_size if isinstance(self.model, Path) else len(self.model)


def compare(
    subjects: Sequence[Subject],
    feeds: Mapping[str, Value],
    method: Method | None = None,
    *,
    together_up_to: int | None = None,
    tell: Callable[[Progress], None] | None = None,
    clock: Clock = time.perf_counter,
    hurried: Callable[[], bool] = lambda: False,
    turn: Turn = ALONE,
) -> Comparison:
    """All subjects on the same inputs, each against the first; in a part of the time from when on it is `hurried`.

    Models that together exceed `together_up_to` bytes, or what the device has room for, are opened one at a time, so
    that memory never holds more than the largest. Sittings wait for their `turn`; the method's seconds do not run
    meanwhile. On a GPU models are opened outside of it, and started in it where that chooses kernels by timing them.
    """
    names = [subject.name for subject in subjects]
    if not names or len(set(names)) < len(names):
        raise BadOption(f"expected subjects with different names, found {', '.join(names) or 'none'}")
    room = room_on(subjects[0].deployment) if together_up_to is None else together_up_to
    together = len(subjects) == 1 or sum(subject.bytes for subject in subjects) <= room

    def open_runner(index: int) -> Runner:
        subject = subjects[index]
        return opened(Session(subject.model, subject.deployment, subject.folder), feeds)

    method = method or Method()
    warm_up_seconds = _WARM_UP_SHARE * method.seconds / len(subjects)
    bench = Bench(
        open_runner, turn.paused(clock), method.sample_seconds, warm_up_seconds, opening(turn, subjects[0].deployment)
    )
    with without_garbage_collection():
        return Contest(names, bench, method, together, tell, hurried, turn).run()


def room_on(deployment: Deployment) -> int:
    if deployment.target == "cpu":
        return TOGETHER_UP_TO
    return max(TOGETHER_UP_TO, gpu_memory(deployment.device_id) // _GPU_SHARE)


def opening(turn: Turn, deployment: Deployment) -> Callable[[], AbstractContextManager[None]]:
    """Where models are opened: that is work for a CPU, beside which others may measure on a GPU, not on the CPU."""
    return turn.aside if deployment.target == "cuda" else nullcontext


def running(turn: Turn, deployment: Deployment) -> AbstractContextManager[None]:
    """Where models are run that nobody times. On a GPU that may be beside somebody who measures: now and then a sample
    takes longer then, of either contender alike. Kernels may be chosen by trying them there, because their answers
    count and not their times."""
    return nullcontext() if deployment.target == "cuda" else turn.taken()


def opened(session: Session, feeds: Mapping[str, Value]) -> OpenModel:
    """A model that can be started, or was, where that may be done beside others."""
    model = OpenModel(session, feeds)
    if session.deployment.target == "cuda" and not session.deployment.tries_kernels:
        try:
            model.start()
        except BaseException:
            model.close()
            raise
    return model


class OpenModel:
    def __init__(self, session: Session, feeds: Mapping[str, Value]) -> None:
        self._session, self._feeds = session, feeds
        self.run: Callable[[], None] = self.start

    def start(self) -> None:
        """The second time nothing happens."""
        if self.run == self.start:
            self.run = self._session.bind(self._feeds).run

    def close(self) -> None:
        """Once or more often."""
        self._session.close()
        self.run = _closed


def _closed() -> None:
    raise CannotRun("the model was closed")


@contextlib.contextmanager
def without_garbage_collection() -> Generator[None]:
    """Python's collector would pause a sample now and then. What was just left behind goes first; among thousands of
    rules that stay nothing is looked for."""
    was_on = gc.isenabled()
    gc.collect(1)
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
