"""A worker: `python -m server.worker DEVICE PARENT`. One job at a time, one worker for each device."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from server.attempt import Attempt, Bench, Died, Stopped
from server.blobs import Blobs
from server.children import end_with_parent, python
from server.claims import Claim, Claims
from server.database import Database, open_database
from server.devices import cores_of, served, wanted
from server.fleet import Fleet
from server.housekeeping import Housekeeping
from server.leftovers import kill_marked
from server.locks import DeviceLock
from server.logs import in_job, set_up_logs
from server.offers import Unusable, ask
from server.outcome import problem_of
from server.pulse import Pulse
from server.settings import Settings, read_settings
from server.store import Damaged, open_store

IDLE_SECONDS = 0.3
PROBE_AGAIN_SECONDS = 30.0
RUNNER = python("server.runner")
log = logging.getLogger("superopt.worker")


class Worker:
    def __init__(self, settings: Settings, device: str, command: Sequence[str] = RUNNER, count: int = 1) -> None:
        """`command` starts the process of a job; `count` workers share the machine."""
        self._settings, self._device, self._command, self._count = settings, device, command, count
        self._stopping = threading.Event()
        self._stop_at = 0.0

    def stop(self) -> None:
        """Finish soon: a running job gets the settings' grace, then it is queued again."""
        if not self._stopping.is_set():
            self._stop_at = time.monotonic() + self._settings.grace
            self._stopping.set()

    def run(self, offered: dict[str, Any] | None = None) -> None:
        """Work until it is time to stop. `offered`: what the machine offers, where that is known already."""
        lock = DeviceLock(self._settings.folder / "locks", self._device)
        if not lock.acquire(self._stopping.wait):
            return
        database = open_database(self._settings.database_url)
        try:
            kill_marked(str(lock.path))
            offered = offered or self._offered()
            if offered is not None:
                name = f"{socket.gethostname()[:24]}/{self._device[:24]}/{lock.name()}"
                self._work(database, name, str(lock.path), offered)
        finally:
            database.close()
            lock.release()

    def _offered(self) -> dict[str, Any] | None:
        """What the machine offers, asked until the device works; None where it is time to stop."""
        while not self._stopping.is_set():
            try:
                return ask(self._device)
            except Unusable as error:
                log.error("the device does not work", extra={"device": self._device, "reason": str(error)})
            self._stopping.wait(PROBE_AGAIN_SECONDS)
        return None

    def _work(self, database: Database, name: str, mark: str, offered: dict[str, Any]) -> None:
        claims = Claims(database, self._settings.lease, self._settings.attempts)
        fleet = Fleet(database, self._settings.lease)
        blobs = Blobs(database, open_store(self._settings.store_url))
        folder = self._settings.folder / "work" / self._device.replace(":", "-")
        shutil.rmtree(folder, ignore_errors=True)  # of the worker that held the lock before us
        targets = served(offered["targets"], self._device, self._count)
        claims.take_back(name)
        fleet.register(name, self._device, targets, offered["facts"])
        pulse = Pulse(name, claims, fleet, self._settings.lease)
        housekeeping = Housekeeping(self._settings, database, blobs, claims)
        pulse.start()
        housekeeping.start()
        log.info("ready", extra={"worker": name, "facts": offered["facts"]})
        bench = Bench(folder, self._device, mark, self._command, claims, blobs)
        try:
            while not self._stopping.is_set():
                claim = self._claim(claims, name, targets)
                if claim is None:
                    self._stopping.wait(IDLE_SECONDS)
                    continue
                pulse.begin(claim)
                with in_job(claim.job.id):
                    attempt(bench, claim, pulse.lost.is_set, self._must_stop)
                pulse.end()
        finally:
            housekeeping.stop()
            pulse.stop()
            fleet.leave(name)

    def _claim(self, claims: Claims, name: str, targets: dict[str, str]) -> Claim | None:
        try:
            return claims.claim(name, targets) if claims.is_waiting(targets) else None
        except SQLAlchemyError as error:
            log.warning("the database did not answer: %s", type(error).__name__)
            return None

    def _must_stop(self) -> bool:
        return self._stopping.is_set() and time.monotonic() > self._stop_at


def attempt(bench: Bench, claim: Claim, is_lost: Callable[[], bool], must_stop: Callable[[], bool]) -> None:
    """Work on a claim and say in the database what came of it."""
    log.info("begins", extra={"attempt": claim.job.attempts, "tenant": claim.job.tenant})
    try:
        try:
            Attempt(bench, claim, is_lost, must_stop).run()
            log.info("ended")
        except Stopped:
            given_back = bench.claims.release(claim)
            log.info("given back" if given_back else "was taken from this worker")
        except Damaged as error:
            log.error("the store is damaged: %s", error)
            bench.claims.fail(claim, {**problem_of("SuperoptError", str(error)), "status": 503})
        except (Died, OSError) as error:
            log.error("did not end: %s", error)
            bench.claims.abandon(claim)
    except SQLAlchemyError as error:  # the lease runs out by itself
        log.warning("the database did not answer: %s", type(error).__name__)


def main() -> None:
    device, parent = sys.argv[1:]
    end_with_parent(int(parent))
    settings = read_settings()
    set_up_logs(settings.log_level)
    devices = wanted(settings)
    os.sched_setaffinity(0, cores_of(os.sched_getaffinity(0), devices.index(device), len(devices)))
    worker = Worker(settings, device, count=len(devices))
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    signal.signal(signal.SIGINT, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main()
