"""Which workers there are: each says what it can do, and that it is alive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update

from server.database import Database
from server.tables import workers

FORGOTTEN = 86_400.0
"""Seconds after which a worker that was not seen is no longer listed."""


@dataclass(frozen=True)
class Worker:
    id: str
    device: str
    targets: Mapping[str, str]
    """Targets that it serves, each with a fingerprint of the device, the versions and the rules behind it."""
    facts: Mapping[str, Any]
    started: float
    seen: float
    job: str | None


class Fleet:
    def __init__(self, database: Database, patience: float) -> None:
        """`patience`: seconds without a sign of life after which a worker is taken for dead."""
        self._database, self._patience = database, patience

    def register(self, id: str, device: str, targets: Mapping[str, str], facts: Mapping[str, Any]) -> None:
        with self._database.write() as connection:
            now = self._database.now(connection)
            connection.execute(delete(workers).where(workers.c.seen < now - FORGOTTEN))
            values = {"device": device, "targets": dict(targets), "facts": dict(facts), "started": now, "seen": now}
            row = self._database.insert(workers).values(id=id, job=None, **values)
            connection.execute(row.on_conflict_do_update(index_elements=["id"], set_={**values, "job": None}))

    def beat(self, jobs: Mapping[str, str | None]) -> None:
        """Workers are alive, each with the job that it has."""
        if jobs:
            with self._database.write() as connection:
                now = self._database.now(connection)
                alive = (
                    update(workers).where(workers.c.id == bindparam("worker")).values(job=bindparam("has"), seen=now)
                )
                connection.execute(alive, [{"worker": id, "has": job} for id, job in sorted(jobs.items())])

    def leave(self, *ids: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(workers).where(workers.c.id.in_(ids)))

    def live(self, connection: Connection) -> list[Worker]:
        now = self._database.now(connection)
        query = select(workers).where(workers.c.seen > now - self._patience).order_by(workers.c.id)
        return [Worker(**row) for row in connection.execute(query).mappings()]

    def fingerprints(self, connection: Connection, target: str) -> list[str]:
        """Of every live worker that could take such a job."""
        return sorted({w.targets[target] for w in self.live(connection) if target in w.targets})
