"""Jobs on a cluster: `python -m server.dispatch PARENT`. One process claims jobs for all devices that are free.

Of several dispatchers of one cluster and one database one works and the others stand by. A job is sent to the node
whose device it was claimed for. From then on the node has the lease; the dispatcher keeps it up only until the job has
begun there. When Ray says that process or node is gone, the claim is given up and the job is queued again; whoever had
it can write nothing under a claim that is not the latest.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from server.alone import Alone
from server.blobs import Blobs
from server.children import end_with_parent
from server.claims import Claim, Claims
from server.cluster import Cluster, Ended, Handle, RayCluster
from server.database import Database, open_database
from server.fleet import Fleet
from server.housekeeping import Housekeeping
from server.logs import set_up_logs
from server.node import Errand
from server.seats import Seat, Seats, for_nodes
from server.settings import Settings, read_settings
from server.store import open_store
from server.worker import RUNNER
from superopt.errors import SuperoptError

IDLE_SECONDS = 0.3
STANDBY_SECONDS = 1.0
LOOK_SECONDS = 2.0
"""How long a new node may go unnoticed."""
START_SECONDS = 120.0
"""In which a job must have begun on its node; else somebody else has the node's resources, and it is queued again."""
REST_SECONDS = 5.0
"""In which a seat that lost a job gets no other: Ray may not have seen yet that its node is dead."""
log = logging.getLogger("superopt.dispatch")


@dataclass
class Run:
    """A job on its way, or under way."""

    seat: Seat
    claim: Claim
    since: float
    begun: bool = False


class Dispatcher:
    def __init__(
        self,
        settings: Settings,
        command: Sequence[str] = RUNNER,
        offered: Mapping[str, Any] | None = None,
        join: Callable[[str], Cluster] = RayCluster,
    ) -> None:
        """`command` starts the process of a job; `offered`: what every node offers, where that is known already."""
        self._settings, self._command, self._offered, self._join = settings, command, offered, join
        self._stopping = threading.Event()
        self._stop_at = 0.0
        self._runs: dict[Handle, Run] = {}
        self._seats: dict[str, Seat] = {}
        self._resting: dict[str, float] = {}
        self._look_at = self._beat_at = 0.0

    def stop(self) -> None:
        """Finish soon: running jobs get the settings' grace, then they are queued again."""
        if not self._stopping.is_set():
            self._stop_at = time.monotonic() + self._settings.grace
            self._stopping.set()

    def run(self) -> None:
        """Until it is time to stop, or until another dispatcher may have taken over."""
        cluster = self._join(self._settings.address)
        database = open_database(self._settings.database_url)
        alone = Alone(database, f"dispatch {cluster.name}")
        try:
            while not _try(alone.take):
                if self._stopping.wait(STANDBY_SECONDS):
                    return
            self._work(cluster, database, alone)
        finally:
            alone.give_back()
            database.close()
            cluster.close()

    def _work(self, cluster: Cluster, database: Database, alone: Alone) -> None:
        self._cluster = cluster
        self._claims = Claims(database, self._settings.lease, self._settings.attempts)
        self._fleet = Fleet(database, self._settings.lease)
        blobs = Blobs(database, open_store(self._settings.store_url))
        housekeeping = Housekeeping(self._settings, database, blobs, self._claims)
        seats = Seats(cluster, self._settings, self._offered)
        housekeeping.start()
        log.info("dispatching", extra={"cluster": cluster.name})
        try:
            while not self._is_over() and (alone.holds() or self._regains(alone)):
                try:
                    self._step(seats)
                except SQLAlchemyError as error:
                    log.warning("the database did not answer: %s", type(error).__name__)
                    self._stopping.wait(IDLE_SECONDS)
        finally:
            housekeeping.stop()
            self._leave()

    def _regains(self, alone: Alone) -> bool:
        """The connection broke that held the right to dispatch: it is ours again, unless somebody was quicker."""
        alone.give_back()
        while not self._is_over():
            taken = _try(alone.take)
            if taken is not None:
                return taken
            self._stopping.wait(STANDBY_SECONDS)
        return False

    def _is_over(self) -> bool:
        return self._stopping.is_set() and (not self._runs or time.monotonic() > self._stop_at)

    def _step(self, seats: Seats) -> None:
        now = time.monotonic()
        if now >= self._look_at:
            self._seat(seats.look())
            self._look_at = now + LOOK_SECONDS
        if now >= self._beat_at:
            busy = {run.seat.name: run.claim.job.id for run in self._runs.values()}
            self._fleet.beat({name: busy.get(name) for name in self._seats})
            self._keep_up(now)
            self._beat_at = now + self._settings.lease / 3
        if not self._stopping.is_set():
            self._fill(now)
        for ended in self._cluster.ended(list(self._runs), IDLE_SECONDS):
            self._end(ended)
        if not self._runs:
            self._stopping.wait(IDLE_SECONDS)

    def _seat(self, found: dict[str, Seat]) -> None:
        """Tell who came and who went. What a dispatcher that died had under a seat's name is queued again."""
        for name, seat in found.items():
            if self._seats.get(name) != seat:
                if name not in self._seats:
                    self._claims.take_back(name)
                    log.info("ready", extra={"worker": name, "device": seat.device, "facts": dict(seat.facts)})
                self._fleet.register(name, seat.device, seat.targets, seat.facts)
                self._seats[name] = seat
        gone = [name for name in self._seats if name not in found]
        if gone:
            self._fleet.leave(*gone)
            log.warning("gone", extra={"workers": gone})
        for name in gone:
            del self._seats[name]

    def _fill(self, now: float) -> None:
        taken = {run.seat.name for run in self._runs.values()}
        nothing_for: set[tuple[str, ...]] = set()
        for name, seat in self._seats.items():
            served = tuple(sorted(seat.targets))
            if name in taken or served in nothing_for or now < self._resting.get(name, 0.0):
                continue
            claim = self._claims.claim(name, seat.targets) if self._claims.is_waiting(seat.targets) else None
            if claim is None:
                nothing_for.add(served)
            else:
                self._start(seat, claim)

    def _start(self, seat: Seat, claim: Claim) -> None:
        memory = (seat.node.memory // seat.count) >> 20
        errand = Errand(for_nodes(self._settings), claim, memory, tuple(self._command), seat.number, seat.count)
        log.info("sent", extra={"job": claim.job.id, "worker": seat.name, "attempt": claim.job.attempts})
        self._runs[self._cluster.start(seat.node, seat.kind, errand)] = Run(seat, claim, time.monotonic())
        self._fleet.beat({seat.name: claim.job.id})

    def _keep_up(self, now: float) -> None:
        """The leases of jobs that have not begun; one that does not begin is taken back and its seat left alone."""
        for handle, run in list(self._runs.items()):
            if run.begun:
                continue
            run.begun = self._claims.has_begun(run.claim)
            if run.begun:
                continue
            if now - run.since > START_SECONDS:
                log.warning("did not begin", extra={"job": run.claim.job.id, "worker": run.seat.name})
                self._claims.release(run.claim)
                self._resting[run.seat.name] = now + START_SECONDS
                self._cluster.cancel(handle)
            else:
                self._claims.renew(run.claim)

    def _end(self, ended: Ended) -> None:
        """Whatever Ray says: the database knows whether the job has ended."""
        run = self._runs[ended.handle]
        if ended.error is not None:
            log.error("was lost: %s", ended.error, extra={"job": run.claim.job.id, "worker": run.seat.name})
            self._resting[run.seat.name] = time.monotonic() + REST_SECONDS
        if self._claims.holds(run.claim):
            if ended.started:
                self._claims.abandon(run.claim)
            else:
                self._claims.release(run.claim)
        del self._runs[ended.handle]
        self._fleet.beat({run.seat.name: None})

    def _leave(self) -> None:
        """Jobs under way are queued again; their processes see that, and end."""
        for handle, run in self._runs.items():
            _try(lambda run=run: self._claims.release(run.claim))
            self._cluster.cancel(handle)
        _try(lambda: self._fleet.leave(*self._seats))


def _try(call: Callable[[], Any]) -> Any:
    """None where the database does not answer."""
    try:
        return call()
    except SQLAlchemyError as error:
        log.warning("the database did not answer: %s", type(error).__name__)
        return None


def main() -> None:
    (parent,) = sys.argv[1:]
    end_with_parent(int(parent))
    settings = read_settings()
    set_up_logs(settings.log_level)
    dispatcher = Dispatcher(settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: dispatcher.stop())
    try:
        dispatcher.run()
    except SuperoptError as error:
        log.error("cannot dispatch: %s", error)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
