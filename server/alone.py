"""The right to be the only process that does something. It is gone with the process, however that ends.

With SQLite it is a lock on a file beside the database; with PostgreSQL an advisory lock of a connection that is kept
open for it, so that it holds over several machines.
"""

from __future__ import annotations

import fcntl
from collections.abc import Generator
from contextlib import contextmanager
from typing import BinaryIO

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from server.database import Database


class Alone:
    def __init__(self, database: Database, what: str) -> None:
        self._database, self._what = database, what
        self._file: BinaryIO | None = None
        self._connection: Connection | None = None

    def take(self) -> bool:
        """At once, or not at all."""
        if not self._database.is_sqlite:
            return self._take_advisory()
        name = "".join(c if c.isalnum() else "-" for c in self._what)
        file = open(f"{self._database.url.database}.{name}.lock", "ab")  # noqa: SIM115 - held as long as the lock
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._file = file
        return True

    def holds(self) -> bool:
        """Whether it still is ours: a connection can break."""
        if self._connection is None:
            return self._file is not None
        try:
            self._connection.execute(text("select 1"))
        except SQLAlchemyError:
            return False
        return True

    def give_back(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._connection is not None:
            self._connection.invalidate()  # closed, not pooled: the lock goes with it
            self._connection.close()
            self._connection = None

    def _take_advisory(self) -> bool:
        connection = self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        query = text("select pg_try_advisory_lock(hashtextextended(:what, 0))")
        self._connection = connection
        if connection.execute(query, {"what": f"superopt {self._what}"}).scalar_one():
            return True
        self.give_back()
        return False


@contextmanager
def tried_alone(database: Database, what: str) -> Generator[bool]:
    """False in here where another process is doing it."""
    alone = Alone(database, what)
    try:
        yield alone.take()
    finally:
        alone.give_back()
