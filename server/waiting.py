"""Waiting for jobs: one look at the database for all who wait, a few times a second."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from server.database import Database
from server.tables import jobs

LOOK_SECONDS = 0.25


@dataclass(eq=False)
class _Waiter:
    job: str
    seen: int
    moved: asyncio.Event = field(default_factory=asyncio.Event)


class Waiting:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiters: set[_Waiter] = set()
        self._looking: asyncio.Task[None] | None = None
        self.closing = asyncio.Event()
        """Set when the process is to end: nobody waits any longer."""

    async def moved(self, job: str, seen: int, seconds: float) -> bool:
        """Wait until the job has an event after the one numbered `seen`; False where the time is over first."""
        waiter = _Waiter(job, seen)
        self._waiters.add(waiter)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            await asyncio.wait_for(waiter.moved.wait(), seconds)
            return True
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(waiter)

    def close(self) -> None:
        self.closing.set()
        for waiter in self._waiters:
            waiter.moved.set()

    async def _look(self) -> None:
        while self._waiters:
            wanted = {w.job for w in self._waiters}
            with contextlib.suppress(SQLAlchemyError):  # it may be back at the next look
                latest = await run_in_threadpool(self._latest, wanted)
                for waiter in self._waiters:
                    if latest.get(waiter.job, waiter.seen + 1) > waiter.seen:  # a job that is gone has moved too
                        waiter.moved.set()
            await asyncio.sleep(LOOK_SECONDS)

    def _latest(self, wanted: set[str]) -> dict[str, int]:
        with self._database.read() as connection:
            query = select(jobs.c.id, jobs.c.last_event).where(jobs.c.id.in_(wanted), ~jobs.c.gone)
            return {row[0]: row[1] for row in connection.execute(query)}
