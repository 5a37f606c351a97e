"""A worker: `python -m server.worker PLACE PARENT`. One job at a time; those for one device take turns at measuring."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from server.attempt import Attempt, Bench, Died, Stopped
from server.blobs import Blobs
from server.children import end_with_parent, python
from server.claims import Claim, Claims
from server.database import Database, open_database
from server.devices import Place, cores_of, places, served
from server.fleet import Fleet
from server.housekeeping import Housekeeping
from server.leftovers import kill_marked
from server.locks import DeviceLock, lock_file
from server.logs import in_job, set_up_logs
from server.offers import Unusable, ask
from server.outcome import problem_of
from server.pulse import Pulse
from server.settings import Settings, read_settings
from server.spool import FULL
from server.store import Damaged, open_store
from superopt.engine.watch import default_memory_limit

IDLE_SECONDS = 0.3
PROBE_AGAIN_SECONDS = 30.0
LEAST_FREE, FULL_SECONDS = 64 << 20, 5.0
"""Bytes of the disk without which no job is begun, and how often they are looked for."""
RUNNER = python("server.runner")
log = logging.getLogger("superopt.worker")


class Worker:
    def __init__(
        self, settings: Settings, place: Place, command: Sequence[str] = RUNNER, all: Sequence[Place] = ()
    ) -> None:
        """`command` starts the process of a job; `all` share the machine, this one among them."""
        self._settings, self._place, self._command, self._all = settings, place, command, all or (place,)
        self._device = place.device
        self._stopping = threading.Event()
        self._stop_at = 0.0

    def stop(self) -> None:
        """Finish soon: a running job gets the settings' grace, then it is queued again."""
        if not self._stopping.is_set():
            self._stop_at = time.monotonic() + self._settings.grace
            self._stopping.set()

    def run(self, offered: dict[str, Any] | None = None) -> None:
        """Work until it is time to stop. `offered`: what the machine offers, where that is known already."""
        lock = DeviceLock(self._locks, self._place.name)
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

    @property
    def _locks(self) -> Path:
        return self._settings.folder / "locks"

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
        folder = self._settings.folder / "work" / re.sub("[:/]", "-", self._place.name)
        shutil.rmtree(folder, ignore_errors=True)  # of the worker that held the lock before us
        targets = served(offered["targets"], self._place, len({place.device for place in self._all}))
        claims.take_back(name)
        fleet.register(name, self._device, targets, offered["facts"])
        pulse = Pulse(name, claims, fleet, self._settings.lease)
        housekeeping = Housekeeping(self._settings, database, blobs, claims)
        pulse.start()
        housekeeping.start()
        log.info("ready", extra={"worker": name, "facts": offered["facts"]})
        turn = lock_file(self._locks, f"{self._device}/turn")
        share = (default_memory_limit() >> 20) // len(self._all) if len(self._all) > 1 else 0
        bench = Bench(folder, self._device, mark, self._command, claims, blobs, turn)
        try:
            while not self._stopping.is_set():
                claim = self._claim(claims, name, targets)
                if claim is None:
                    self._stopping.wait(IDLE_SECONDS)
                    continue
                pulse.begin(claim)
                with in_job(claim.job.id):
                    attempt(bench, limited(claim, share), pulse.lost.is_set, self._must_stop)
                pulse.end()
        finally:
            housekeeping.stop()
            pulse.stop()
            fleet.leave(name)

    def _claim(self, claims: Claims, name: str, targets: dict[str, str]) -> Claim | None:
        if shutil.disk_usage(self._locks).free < LEAST_FREE:  # rather than fail one job after the other
            log.error("the disk is full: no job is begun", extra={"folder": str(self._settings.folder)})
            self._stopping.wait(FULL_SECONDS)
            return None
        try:
            return claims.claim(name, targets) if claims.is_waiting(targets) else None
        except SQLAlchemyError as error:
            log.warning("the database did not answer: %s", type(error).__name__)
            return None

    def _must_stop(self) -> bool:
        return self._stopping.is_set() and time.monotonic() > self._stop_at


def limited(claim: Claim, memory: int) -> Claim:
    """The claim with a limit, in MiB, on what the job may hold: as its options say, but no more than is there for it;
    0 for that is all that is free."""
    options = dict(claim.job.options)
    most = memory or default_memory_limit() >> 20
    options["memory_limit"] = min(options.get("memory_limit") or memory, most)
    return replace(claim, job=replace(claim.job, options=options))


def attempt(bench: Bench, claim: Claim, is_lost: Callable[[], bool], must_stop: Callable[[], bool]) -> None:
    """Work on a claim and say in the database what came of it."""
    log.info("begins", extra={"attempt": claim.job.attempts, "tenant": claim.job.tenant})
    try:
        try:
            working = Attempt(bench, claim, is_lost, must_stop)
            working.run()
            log.info("ended", extra={"waited": round(working.waited, 1)})
        except Stopped:
            given_back = bench.claims.release(claim)
            log.info("given back" if given_back else "was taken from this worker")
        except Damaged as error:
            log.error("the store is damaged: %s", error)
            bench.claims.fail(claim, {**problem_of("SuperoptError", str(error)), "status": 503})
        except (Died, OSError) as error:
            log.error("did not end: %s", error)
            if isinstance(error, OSError) and error.errno in FULL:  # it would be no better a second time
                problem = problem_of("SuperoptError", "the disk of the service was too full to work on it")
                bench.claims.fail(claim, {**problem, "status": 507})
            else:
                bench.claims.abandon(claim)
    except SQLAlchemyError as error:  # the lease runs out by itself
        log.warning("the database did not answer: %s", type(error).__name__)


def main() -> None:
    name, parent = sys.argv[1:]
    end_with_parent(int(parent))
    settings = read_settings()
    set_up_logs(settings.log_level)
    all = places(settings)
    number = next(i for i, place in enumerate(all) if place.name == name)
    os.sched_setaffinity(0, cores_of(os.sched_getaffinity(0), number, len(all)))
    worker = Worker(settings, all[number], all=all)
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    signal.signal(signal.SIGINT, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main()
