"""The database: SQLite with a write-ahead log, or PostgreSQL; one transaction for each change of a job."""

from __future__ import annotations

import fcntl
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError

from superopt.errors import BadOption

BUSY_SECONDS = 30
"""How long a writer waits for the writers of other processes."""
_WRITING = "superopt_writing"


class Database:
    def __init__(self, url: str) -> None:
        try:
            self.url = make_url(url)
            self.is_sqlite = self.url.get_backend_name() == "sqlite"
            if self.is_sqlite and self.url.database:
                Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
            self.engine = _sqlite_engine(url) if self.is_sqlite else create_engine(url, pool_pre_ping=True)
        except (ArgumentError, ImportError) as error:
            raise BadOption(f"--database: cannot be opened: {error}") from None
        self._writer = self.engine.execution_options(**{_WRITING: True})
        # SQLite lets one writer in at a time, and gives no turns: within a process a lock does.
        self._turn = threading.Lock() if self.is_sqlite else nullcontext()

    @contextmanager
    def read(self) -> Generator[Connection]:
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Generator[Connection]:
        """One transaction: all of it happens, or nothing of it."""
        with self._turn, self._writer.connect() as connection, connection.begin():
            yield connection

    def insert(self, table: Table) -> Any:
        """An INSERT that can say what is to happen `on_conflict_…`."""
        return sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)

    def now(self, connection: Connection) -> float:
        """One clock for all: leases of several machines are compared with the database's own."""
        if self.is_sqlite:
            return time.time()
        return float(connection.execute(text("select extract(epoch from clock_timestamp())")).scalar_one())

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def alone(self) -> Generator[None]:
        """No other process is in here at the same time."""
        if not self.is_sqlite:
            with self.engine.connect() as connection, connection.begin():
                connection.execute(text("select pg_advisory_xact_lock(hashtext('superopt migrations'))"))
                yield
            return
        with open(f"{self.url.database}.lock", "ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def open_database(url: str) -> Database:
    """The database with its tables as this version wants them."""
    from alembic import command  # half a second that only a starting process spends
    from alembic.config import Config

    database = Database(url)
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    with database.alone():
        config.attributes["engine"] = database.engine
        command.upgrade(config, "head")
    return database


def _sqlite_engine(url: str) -> Engine:
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS}, pool_size=50, max_overflow=10)

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.isolation_level = None  # transactions begin where we say so, below
        cursor = connection.cursor()
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            f"busy_timeout={BUSY_SECONDS * 1000}",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        writing = connection.get_execution_options().get(_WRITING, False)
        # Who asks for the lock only at its first write can be refused then, and would have to begin again.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine
