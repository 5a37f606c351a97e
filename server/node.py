"""A job on a node of a cluster: what a process there does with a claim that the dispatcher made.

It renews the lease itself, so that a node that stands still loses the job like one that dies, and it writes what came
of the work under the claim's number, like any worker.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from server.attempt import Bench
from server.blobs import Blobs
from server.claims import Claim, Claims
from server.database import Database
from server.devices import cores_of
from server.leftovers import kill_marked
from server.locks import DeviceLock
from server.logs import in_job, set_up_logs
from server.offers import ask
from server.pulse import Pulse
from server.settings import read_settings
from server.store import open_store
from server.worker import attempt, limited

Kind: TypeAlias = Literal["cpu", "cuda"]


@dataclass(frozen=True)
class Errand:
    """What is sent to a node."""

    environment: Mapping[str, str]
    """The service's settings."""
    claim: Claim
    memory: int
    """MiB that the job may hold where its options do not say."""
    command: Sequence[str]
    """Starts the process of a job."""
    number: int
    count: int
    """Which of how many that may work on the node at once."""


def work(errand: Errand, device: str) -> None:
    settings = read_settings(environment=errand.environment)
    set_up_logs(settings.log_level)
    claim = limited(errand.claim, errand.memory)
    database = Database(settings.database_url)
    claims = Claims(database, settings.lease, settings.attempts)
    pulse = Pulse(claim.job.worker or "", claims, None, settings.lease)
    try:
        blobs = Blobs(database, open_store(settings.store_url))
        with _own_cores(errand.number, errand.count), _seat(settings.folder, device) as (folder, mark):
            pulse.begin(claim)
            pulse.start()
            with in_job(claim.job.id):
                attempt(Bench(folder, device, mark, errand.command, claims, blobs), claim, pulse.lost.is_set, _never)
    finally:
        if pulse.is_alive():
            pulse.stop()
        database.close()


def offered(environment: Mapping[str, str], device: str, number: int, count: int) -> dict[str, Any]:
    """What the node's device offers, as a job on it would find it; OSError where jobs would have no place to work."""
    settings = read_settings(environment=environment)
    with _own_cores(number, count), _seat(settings.folder, device):
        return ask(device)


@contextmanager
def _seat(data: Path, device: str) -> Generator[tuple[Path, str]]:
    """A working folder that nobody else on this machine has, and the mark of processes that work in it.

    What a process that was killed here left behind is cleared by the next one.
    """
    names = (f"ray-{device.replace(':', '-')}-{number}" for number in itertools.count())
    locks = ((DeviceLock(data / "locks", name), name) for name in names)
    lock, name = next((lock, name) for lock, name in locks if lock.acquire(lambda _: True))
    try:
        kill_marked(str(lock.path))
        folder = data / "work" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        yield folder, str(lock.path)
    finally:
        lock.release()


@contextmanager
def _own_cores(number: int, count: int) -> Generator[None]:
    """The process may be used for other work later."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores_of(before, number, count))
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _never() -> bool:
    """Only the dispatcher decides that it is time to stop, and takes the claim away."""
    return False
