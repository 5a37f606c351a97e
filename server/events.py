"""What happens to a job, numbered from 1 without a gap, in the order it was committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection, insert, select, update

from server.tables import events, jobs

Kind = Literal["state", "stage"]


@dataclass(frozen=True)
class Event:
    number: int
    time: float
    kind: Kind
    data: Mapping[str, Any]


def append(connection: Connection, job: str, now: float, kind: Kind, data: Mapping[str, Any]) -> None:
    """The row of the job is locked until the transaction ends, so that numbers come in the order of commits."""
    counted = update(jobs).where(jobs.c.id == job).values(last_event=jobs.c.last_event + 1)
    number = connection.execute(counted.returning(jobs.c.last_event)).scalar_one()
    connection.execute(insert(events).values(job=job, number=number, time=now, kind=kind, data=dict(data)))


def after(connection: Connection, job: str, number: int, limit: int = 500) -> list[Event]:
    query = select(events.c.number, events.c.time, events.c.kind, events.c.data)
    query = query.where(events.c.job == job, events.c.number > number).order_by(events.c.number).limit(limit)
    return [Event(*row) for row in connection.execute(query)]


def latest(connection: Connection, job: str, limit: int) -> list[Event]:
    """The last ones, oldest first."""
    query = select(events.c.number, events.c.time, events.c.kind, events.c.data).where(events.c.job == job)
    rows = connection.execute(query.order_by(events.c.number.desc()).limit(limit)).all()
    return [Event(*row) for row in reversed(rows)]
