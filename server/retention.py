"""What is no longer kept: ended jobs after their time, results that nobody has, files that nobody refers to."""

from __future__ import annotations

from sqlalchemy import delete, select

from server import results
from server.blobs import Blobs
from server.database import Database
from server.jobs import give_up
from server.records import jobs_of
from server.tables import jobs

TOMBSTONES = 4
"""Times the retention that a job's row outlives its files."""
BATCH = 200


def expire(database: Database, blobs: Blobs, retention: float) -> int:
    """How many jobs were given up. Small transactions: nobody waits long for them."""
    with database.read() as connection:
        now = database.now(connection)
    given_up = 0
    while True:
        with database.write() as connection:
            over = select(jobs).where(~jobs.c.gone, jobs.c.ended < now - retention).limit(BATCH)
            found = jobs_of(connection, over.with_for_update(skip_locked=True))
            for job in found:
                give_up(connection, job)
        given_up += len(found)
        if len(found) < BATCH:
            break
    while True:
        with database.write() as connection:
            if results.forget_unused(connection, now - retention) < results.AT_ONCE:
                break
    with database.write() as connection:
        connection.execute(delete(jobs).where(jobs.c.gone, jobs.c.ended < now - (1 + TOMBSTONES) * retention))
    blobs.collect()
    return given_up
