"""Stored files and who still needs them.

Each file of the store has a row with the time it was last wanted. To keep a file is to write the row first and the file
second; to give one up is to delete row and file in one transaction. So whoever keeps a file that is just being given up
waits for that to end, and then writes it again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import delete, select

from server.database import Database
from server.spool import Spooled
from server.store import Store, fetch
from server.tables import blobs, job_files, result_files

GRACE = 3600.0
"""Seconds between keeping a file and the row of a job or result that refers to it, at most."""


class Blobs:
    def __init__(self, database: Database, store: Store) -> None:
        self._database, self.store = database, store

    def keep(self, file: Spooled) -> None:
        with self._database.write() as connection:
            now = self._database.now(connection)
            row = self._database.insert(blobs).values(digest=file.digest, size=file.size, touched=now)
            connection.execute(row.on_conflict_do_update(index_elements=["digest"], set_={"touched": now}))
        self.store.put(file)

    def fetch(self, digest: str, target: Path, look: Callable[[], None] = lambda: None) -> None:
        fetch(self.store, digest, target, look)

    def collect(self, grace: float = GRACE) -> int:
        """Give up every file that neither a job nor a result refers to."""
        unwanted = (
            ~select(job_files.c.digest).where(job_files.c.digest == blobs.c.digest).exists(),
            ~select(result_files.c.digest).where(result_files.c.digest == blobs.c.digest).exists(),
        )
        with self._database.read() as connection:
            before = self._database.now(connection) - grace
            found = connection.execute(select(blobs.c.digest).where(blobs.c.touched < before, *unwanted)).scalars()
            digests = list(found)
        given_up = 0
        for digest in digests:
            with self._database.write() as connection:
                row = delete(blobs).where(blobs.c.digest == digest, blobs.c.touched < before, *unwanted)
                if connection.execute(row).rowcount:
                    self.store.remove(digest)
                    given_up += 1
        return given_up
