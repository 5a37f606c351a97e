"""Results: written once under a key, never changed; jobs that ask the same on the same device share one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from server.database import Database
from server.records import File
from server.tables import jobs, result_files, results

AT_ONCE = 200
"""Results that one transaction gives up: nobody waits long for it."""


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
    # One statement: between looking and touching, somebody could give it up.
    connection.execute(row.on_conflict_do_update(index_elements=["key"], set_={"used": now}))
    if connection.execute(select(result_files.c.name).where(result_files.c.result == key).limit(1)).first():
        return False
    rows = [{"result": key, "name": f.name, "digest": f.digest, "size": f.size} for f in files]
    connection.execute(insert(result_files), rows)
    return True


def touch(connection: Connection, key: str, now: float) -> None:
    connection.execute(update(results).where(results.c.key == key).values(used=now))


def forget_unused(connection: Connection, before: float, only: str | None = None) -> int:
    """Remove results that no job has and that were last used before then, `AT_ONCE` at most; how many."""
    held = select(jobs.c.result).where(jobs.c.result == results.c.key).exists()
    unused = [results.c.used < before, ~held]
    if only is not None:
        unused.append(results.c.key == only)
    # First nobody else may begin to use them, then look again: a statement does not see who began while it waited.
    locked = select(results.c.key).where(*unused).order_by(results.c.key).limit(AT_ONCE)
    keys = list(connection.execute(locked.with_for_update(of=results)).scalars())
    return connection.execute(delete(results).where(results.c.key.in_(keys), *unused)).rowcount
