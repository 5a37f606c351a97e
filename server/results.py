"""Results: written once under a key, never changed; jobs that ask the same on the same device share one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from server.database import Database
from server.records import File
from server.tables import jobs, result_files, results


def find(connection: Connection, keys: Sequence[str]) -> str | None:
    """One of the keys that a result was written under."""
    if not keys:
        return None
    query = select(results.c.key).where(results.c.key.in_(keys)).order_by(results.c.created).limit(1)
    query = query.with_for_update()  # nobody gives it up before it is used
    return connection.execute(query).scalar_one_or_none()


def summary(connection: Connection, key: str) -> Mapping[str, Any]:
    return connection.execute(select(results.c.summary).where(results.c.key == key)).scalar_one()


def gained(told: Mapping[str, Any]) -> dict[str, Any]:
    """The speed-up of a summary, as a job's row has it."""
    return {"speedup": told["speedup"], "basis": None if told["speedup"] is None else "measured"}


def record(
    database: Database, connection: Connection, key: str, files: Iterable[File], told: Mapping[str, Any], now: float
) -> bool:
    """Write a result; False where one is there already, which then stands."""
    row = database.insert(results).values(key=key, created=now, used=now, summary=dict(told))
    new = row.on_conflict_do_nothing(index_elements=["key"]).returning(results.c.key)
    if connection.execute(new).one_or_none() is None:
        touch(connection, key, now)
        return False
    rows = [{"result": key, "name": f.name, "digest": f.digest, "size": f.size} for f in files]
    connection.execute(insert(result_files), rows)
    return True


def touch(connection: Connection, key: str, now: float) -> None:
    connection.execute(update(results).where(results.c.key == key).values(used=now))


def forget_unused(connection: Connection, before: float, only: str | None = None) -> int:
    """Remove results that no job has and that were last used before then."""
    held = select(jobs.c.result).where(jobs.c.result == results.c.key).exists()
    unused = delete(results).where(results.c.used < before, ~held)
    if only is not None:
        unused = unused.where(results.c.key == only)
    return connection.execute(unused).rowcount
