"""Who works on a job. A claim is a lease with a number; whatever is written for a job needs the latest number.

A worker that is killed says nothing more, its lease runs out, and the job is queued again. A worker that was only slow
finds that its number is no longer the latest, and nothing of what it did counts. So each job ends once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Executable, func, select, update

from server import events, results
from server.database import Database, storable
from server.records import File, Job, files_of_job, job_by_id, own_key, result_key
from server.stages import Reached
from server.tables import jobs, tenants
from server.tallies import RATIOS, SECONDS, Tally

STARTING = "starting"
"""The stage of a job that was claimed and of which nothing was heard since."""


@dataclass(frozen=True)
class Claim:
    """The right to work on a job, until the lease runs out."""

    job: Job
    files: tuple[File, ...]
    fence: int
    fingerprint: str


@dataclass(frozen=True)
class Outcome:
    """What came of the work."""

    files: tuple[File, ...]
    summary: Mapping[str, Any]
    """For people and lists; `speedup` among it."""
    whole: bool
    """It came to its own end, so that others may have the same result."""
    stages: Mapping[str, float]
    """Seconds spent in each."""


class Claims:
    def __init__(self, database: Database, lease: float, attempts: int) -> None:
        self._database, self._lease, self._attempts = database, lease, attempts

    def is_waiting(self, targets: Mapping[str, str]) -> bool:
        """Whether to ask for a claim at all: an idle worker only reads."""
        with self._database.read() as connection:
            query = select(jobs.c.id).where(jobs.c.state == "queued", jobs.c.target.in_(tuple(targets))).limit(1)
            return connection.execute(query).one_or_none() is not None

    def claim(self, worker: str, targets: Mapping[str, str]) -> Claim | None:
        """The next job for a worker that serves these targets, each with its fingerprint; None where none waits."""
        while True:
            with self._database.write() as connection:
                job = self._next(connection, targets)
                if job is None:
                    return None
                now = self._database.now(connection)
                known = results.find(connection, [result_key(job.request, targets[job.target])])
                if known is not None:
                    self._answer(connection, job, known, now)
                    continue
                mine = update(jobs).where(jobs.c.id == job.id, jobs.c.state == "queued").values(
                    state="running", worker=worker, lease=now + self._lease, started=now, fence=jobs.c.fence + 1,
                    attempts=jobs.c.attempts + 1, stage=STARTING, detail="", progress=0.0, speedup=None, basis=None,
                )  # fmt: skip
                if not connection.execute(mine).rowcount:
                    continue  # another worker was faster
                connection.execute(update(tenants).where(tenants.c.name == job.tenant).values(turn=now))
                events.append(connection, job.id, now, "state", {"state": "running", "attempt": job.attempts + 1})
                claimed = job_by_id(connection, job.id)
                assert claimed is not None
                files = files_of_job(connection, job.id)
                return Claim(claimed, files, claimed.fence, targets[job.target])

    def holds(self, claim: Claim) -> bool:
        with self._database.read() as connection:
            query = select(jobs.c.id).where(*_held(claim))
            return connection.execute(query).one_or_none() is not None

    def has_begun(self, claim: Claim) -> bool:
        """Whether somebody has told of work on it; or will not, because the claim no longer counts."""
        with self._database.read() as connection:
            stage = connection.execute(select(jobs.c.stage).where(*_held(claim))).scalar_one_or_none()
            return stage != STARTING

    def renew(self, claim: Claim) -> bool:
        with self._database.write() as connection:
            until = self._database.now(connection) + self._lease
            return connection.execute(update(jobs).where(*_held(claim)).values(lease=until)).rowcount == 1

    def tell(self, claim: Claim, reached: Reached) -> bool:
        """How far the work has come."""
        values = {k: storable(v) if isinstance(v, str) else v for k, v in dataclasses.asdict(reached).items()}
        with self._database.write() as connection:
            if not connection.execute(update(jobs).where(*_held(claim)).values(**values)).rowcount:
                return False
            events.append(connection, claim.job.id, self._database.now(connection), "stage", values)
            return True

    def complete(self, claim: Claim, outcome: Outcome) -> bool:
        """The job is done. Where an equal job was done first, its result stands for both."""
        whole = result_key(claim.job.request, claim.fingerprint)
        key = whole if outcome.whole else own_key(claim.job.id)
        with self._database.write() as connection:
            if not self._lock(connection, claim):
                return False
            now = self._database.now(connection)
            first = results.record(self._database, connection, key, outcome.files, outcome.summary, now)
            told = results.summary(connection, key)
            values = {"result": key, "cached": not first, "progress": 1.0, **results.gained(told)}
            tally = Tally()
            tally.observe("job_seconds", now - (claim.job.started or now), SECONDS)
            for stage, spent in outcome.stages.items():
                tally.observe("stage_seconds", spent, SECONDS, stage=stage)
            if first:
                tally.observe("speedup", told["speedup"] or 1.0, RATIOS)
            self._end(connection, claim, "done", now, values, tally)
            return True

    def fail(self, claim: Claim, problem: Mapping[str, Any]) -> bool:
        with self._database.write() as connection:
            if not self._lock(connection, claim):
                return False
            self._end(connection, claim, "failed", self._database.now(connection), {"error": dict(problem)}, Tally())
            return True

    def release(self, claim: Claim) -> bool:
        """Give the job back unfinished, to where it was in the queue; the attempt does not count."""
        with self._database.write() as connection:
            values = {"state": "queued", "lease": None, "worker": None, "stage": "", "attempts": jobs.c.attempts - 1}
            if not connection.execute(update(jobs).where(*_held(claim)).values(**values)).rowcount:
                return False
            now = self._database.now(connection)
            events.append(connection, claim.job.id, now, "state", {"state": "queued"})
            tally = Tally()
            tally.worked(claim.job, now)
            tally.write(self._database, connection)
            return True

    def abandon(self, claim: Claim) -> None:
        """Give the job up as if the worker had died; the attempt counts."""
        with self._database.write() as connection:
            connection.execute(update(jobs).where(*_held(claim)).values(lease=0.0))
        self.sweep()

    def take_back(self, worker: str) -> None:
        """What a worker had that was of this name and is known to be dead."""
        with self._database.write() as connection:
            dead = update(jobs).where(jobs.c.state == "running", jobs.c.worker == worker)
            connection.execute(dead.values(lease=0.0))
        self.sweep()

    def sweep(self) -> int:
        """Queue again what dead workers had, or fail what too many died of."""
        with self._database.read() as connection:
            overdue = jobs.c.lease < self._database.now(connection)
            lost = list(connection.execute(select(jobs.c.id).where(jobs.c.state == "running", overdue)).scalars())
        return sum(self._requeue(id) for id in lost)

    def _requeue(self, id: str) -> bool:
        with self._database.write() as connection:
            now = self._database.now(connection)
            lost = (jobs.c.id == id, jobs.c.state == "running", jobs.c.lease < now)
            job = job_by_id(connection, id)
            assert job is not None
            if job.attempts >= self._attempts:
                detail = f"{job.attempts} workers died while they worked on it, the last one while {job.stage}"
                error = {"type": "about:blank", "title": "Gave up", "status": 503, "detail": detail}
                values: dict[str, Any] = {"state": "failed", "ended": now, "error": error, "lease": None}
            else:
                values = {"state": "queued", "lease": None, "worker": None, "stage": ""}
            if not connection.execute(update(jobs).where(*lost).values(**values)).rowcount:
                return False
            events.append(connection, id, now, "state", {"state": values["state"]})
            tally = Tally()
            tally.add("workers_lost")
            tally.worked(job, now)
            if values["state"] == "failed":
                tally.add("jobs", state="failed")
            tally.write(self._database, connection)
            return True

    def _next(self, connection: Connection, targets: Mapping[str, str]) -> Job | None:
        """Of the tenant with the fewest jobs under way, then of the one whose turn is longest ago: its oldest job."""
        mine = (jobs.c.state == "queued", jobs.c.target.in_(tuple(targets)))
        query = select(jobs.c.tenant, func.min(jobs.c.queued)).where(*mine).group_by(jobs.c.tenant)
        waiting = _pairs(connection, query)
        if not waiting:
            return None
        query = select(jobs.c.tenant, func.count()).where(jobs.c.state == "running").group_by(jobs.c.tenant)
        running = _pairs(connection, query)
        query = select(tenants.c.name, tenants.c.turn).where(tenants.c.name.in_(tuple(waiting)))
        turns = _pairs(connection, query)
        for tenant in sorted(waiting, key=lambda t: (running.get(t, 0), turns.get(t, 0.0), waiting[t])):
            query = select(jobs.c.id).where(*mine, jobs.c.tenant == tenant).order_by(jobs.c.queued, jobs.c.id).limit(1)
            # What another worker is about to take, or a client to cancel, is passed over, not waited for.
            free = connection.execute(query.with_for_update(skip_locked=True)).scalar_one_or_none()
            if free is not None:
                return job_by_id(connection, free)
        return None

    def _answer(self, connection: Connection, job: Job, known: str, now: float) -> None:
        """A job that waited while an equal one was done."""
        told = results.summary(connection, known)
        values = {"ended": now, "result": known, "cached": True, "progress": 1.0, **results.gained(told)}
        queued = update(jobs).where(jobs.c.id == job.id, jobs.c.state == "queued").values(state="done", **values)
        if connection.execute(queued).rowcount:
            results.touch(connection, known, now)
            events.append(connection, job.id, now, "state", {"state": "done", "cached": True})
            tally = Tally()
            tally.add("cache_hits")
            tally.add("jobs", state="done")
            tally.write(self._database, connection)

    def _lock(self, connection: Connection, claim: Claim) -> bool:
        """Nobody else can change the job until the transaction ends."""
        return connection.execute(update(jobs).where(*_held(claim)).values(fence=claim.fence)).rowcount == 1

    def _end(
        self, connection: Connection, claim: Claim, state: str, now: float, values: Mapping[str, Any], tally: Tally
    ) -> None:
        ended = {"state": state, "ended": now, "lease": None, "stage": "", "detail": "", **values}
        connection.execute(update(jobs).where(jobs.c.id == claim.job.id).values(**ended))
        told = {"state": state, **{k: values[k] for k in ("speedup", "cached", "error") if k in values}}
        events.append(connection, claim.job.id, now, "state", told)
        tally.worked(claim.job, now)
        tally.add("jobs", state=state)
        tally.write(self._database, connection)


def _held(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    return (jobs.c.id == claim.job.id, jobs.c.state == "running", jobs.c.fence == claim.fence)


def _pairs(connection: Connection, query: Executable) -> dict[str, float]:
    return {row[0]: row[1] for row in connection.execute(query)}
