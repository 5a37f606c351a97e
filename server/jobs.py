"""What a client can do with jobs: hand one in, look at its own, take one back."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, and_, delete, func, insert, or_, select, update

from server import events, results
from server.database import Database
from server.fleet import Fleet
from server.problems import Problem
from server.records import ENDED, File, Job, job_by_id, jobs_of, request_digest, result_key
from server.tables import events as event_rows
from server.tables import idempotency, job_files, jobs, locks, tenants
from server.tallies import Tally

RECENT = 20
"""Jobs whose durations tell how long the next one will take."""
LONGEST_WAIT = 600.0


@dataclass(frozen=True)
class Order:
    """A job as it is handed in."""

    tenant: str
    files: tuple[File, ...]
    options: Mapping[str, Any]
    target: str
    key: str | None = None
    """The client's name for this request: asked again under the same name, it is the same job."""


@dataclass(frozen=True)
class Room:
    """How many jobs may wait."""

    all: int
    tenant: int


class Jobs:
    def __init__(self, database: Database, fleet: Fleet, room: Room) -> None:
        self._database, self._fleet, self._room = database, fleet, room

    def submit(self, order: Order) -> Job:
        """The job that is now in the queue; or an ended one, where the answer is known already."""
        request = request_digest(order.files, order.options)
        with self._database.write() as connection:
            # Several API processes count and add one after the other.
            connection.execute(update(locks).where(locks.c.name == "queue").values(turn=locks.c.turn + 1))
            if order.key is not None:
                earlier = self._earlier(connection, order.tenant, order.key, request)
                if earlier is not None:
                    return earlier
            known = results.find(
                connection, [result_key(request, f) for f in self._fleet.fingerprints(connection, order.target)]
            )
            if known is None:
                self._need_room(connection, order.tenant)
            return self._insert(connection, order, request, known)

    def need_room(self, tenant: str) -> None:
        """Refuse before an upload what would be refused after it."""
        with self._database.read() as connection:
            self._need_room(connection, tenant)

    def find(self, tenant: str, id: str) -> Job:
        with self._database.read() as connection:
            return _own(connection, tenant, id)

    def latest(self, tenant: str, limit: int, before: str | None = None) -> list[Job]:
        """The newest first, from the one after `before`."""
        query = select(jobs).where(jobs.c.tenant == tenant, ~jobs.c.gone)
        with self._database.read() as connection:
            if before is not None:
                last = _own(connection, tenant, before)
                older = or_(jobs.c.created < last.created, and_(jobs.c.created == last.created, jobs.c.id < last.id))
                query = query.where(older)
            query = query.order_by(jobs.c.created.desc(), jobs.c.id.desc()).limit(limit)
            return jobs_of(connection, query)

    def cancel(self, tenant: str, id: str) -> Job | None:
        """End a job that has not ended; give up the files of one that has, which is None afterwards.

        A worker sees within a second that the job is no longer its own, and stops.
        """
        with self._database.write() as connection:
            # From here on nobody else can end it.
            connection.execute(select(jobs.c.id).where(jobs.c.id == id).with_for_update())
            job = _own(connection, tenant, id)
            now = self._database.now(connection)
            waiting = update(jobs).where(jobs.c.id == id, jobs.c.state.in_(("queued", "running")))
            if connection.execute(waiting.values(state="canceled", ended=now, lease=None)).rowcount:
                events.append(connection, id, now, "state", {"state": "canceled"})
                tally = Tally()
                tally.add("jobs", state="canceled")
                if job.state == "running":
                    tally.worked(job, now)
                tally.write(self._database, connection)
                return _own(connection, tenant, id)
            give_up(connection, job)
            if job.result is not None:
                results.forget_unused(connection, now + 1, only=job.result)
            return None

    def _earlier(self, connection: Connection, tenant: str, key: str, request: str) -> Job | None:
        where = (idempotency.c.tenant == tenant, idempotency.c.key == key)
        found = connection.execute(select(idempotency.c.job, idempotency.c.request).where(*where)).one_or_none()
        if found is None:
            return None
        if found.request != request:
            raise Problem(422, "this Idempotency-Key was used for another model or other options")
        return _own(connection, tenant, found.job)

    def _need_room(self, connection: Connection, tenant: str) -> None:
        count = select(func.count()).select_from(jobs).where(jobs.c.state == "queued")
        waiting = connection.execute(count).scalar_one()
        own = connection.execute(count.where(jobs.c.tenant == tenant)).scalar_one()
        if waiting < self._room.all and own < self._room.tenant:
            return
        seconds = self._seconds_to_room(connection)
        whose = "" if waiting >= self._room.all else " of yours"
        count = waiting if waiting >= self._room.all else own
        raise Problem(429, f"{count} jobs{whose} are waiting already", headers={"Retry-After": str(seconds)})

    def _seconds_to_room(self, connection: Connection) -> int:
        """About as long as a job takes, of late, shared among the workers."""
        taken = select((jobs.c.ended - jobs.c.started).label("seconds"))
        taken = taken.where(jobs.c.state == "done", jobs.c.started.is_not(None))
        recent = taken.order_by(jobs.c.ended.desc()).limit(RECENT).subquery()
        average = connection.execute(select(func.avg(recent.c.seconds))).scalar_one() or 60.0
        return max(1, round(min(LONGEST_WAIT, average / max(1, len(self._fleet.live(connection))))))

    def _insert(self, connection: Connection, order: Order, request: str, known: str | None) -> Job:
        id, now = uuid.uuid4().hex, self._database.now(connection)
        state = "queued" if known is None else "done"
        values = {"tenant": order.tenant, "request": request, "target": order.target, "options": dict(order.options)}
        tally = Tally()
        tally.add("submitted")
        if known is not None:
            told = results.summary(connection, known)
            values |= {"ended": now, "result": known, "cached": True, "progress": 1.0, **results.gained(told)}
            results.touch(connection, known, now)
            tally.add("cache_hits")
            tally.add("jobs", state="done")
        connection.execute(insert(jobs).values(id=id, state=state, created=now, queued=now, **values))
        rows = [{"job": id, "name": f.name, "digest": f.digest, "size": f.size} for f in order.files]
        connection.execute(insert(job_files), rows)
        if order.key is not None:
            named = {"tenant": order.tenant, "key": order.key, "request": request, "job": id}
            connection.execute(insert(idempotency).values(**named))
        new = self._database.insert(tenants).values(name=order.tenant, turn=0.0)
        connection.execute(new.on_conflict_do_nothing(index_elements=["name"]))
        events.append(connection, id, now, "state", {"state": "queued"})
        if known is not None:
            events.append(connection, id, now, "state", {"state": "done", "cached": True})
        tally.write(self._database, connection)
        return _own(connection, order.tenant, id)


def give_up(connection: Connection, job: Job) -> None:
    """Let go of an ended job's files; the row stays for a while, to say that there was one."""
    assert job.state in ENDED
    connection.execute(update(jobs).where(jobs.c.id == job.id).values(gone=True, result=None, error=None, detail=""))
    connection.execute(delete(job_files).where(job_files.c.job == job.id))
    connection.execute(delete(event_rows).where(event_rows.c.job == job.id))


def _own(connection: Connection, tenant: str, id: str) -> Job:
    """Somebody else's job is no job at all."""
    job = job_by_id(connection, id)
    if job is None or job.tenant != tenant:
        raise Problem(404, "there is no such job")
    if job.gone:
        raise Problem(410, "the files of this job are no longer kept")
    return job
