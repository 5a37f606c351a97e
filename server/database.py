"""The database: SQLite with a write-ahead log, or PostgreSQL; one transaction for each change of a job."""

from __future__ import annotations

import fcntl
import json
import math
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from sqlalchemy import URL, Connection, Engine, Table, create_engine, event, make_url, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError, SQLAlchemyError

from superopt.errors import BadOption

BUSY_SECONDS = 30
"""How long a writer waits for the writers of other processes."""
CACHE_KIB = 256
"""That one connection to SQLite keeps of the file: there are many, and the system keeps it for all of them."""
CONNECTIONS = 10
"""That one process keeps open to PostgreSQL; for a rush it opens as many again."""
_WRITING = "superopt_writing"
_POSTGRES: Mapping[str, Any] = {
    "connect_timeout": 10,
    # Whoever is cut off, or stands still in the middle of a change, does not keep the others waiting for ever.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "tcp_user_timeout": BUSY_SECONDS * 1000,
    "options": f"-c lock_timeout={BUSY_SECONDS}s -c idle_in_transaction_session_timeout={2 * BUSY_SECONDS}s",
}


class Busy(SQLAlchemyError):
    """Others of this process write, or wait to, and take too long."""


class Database:
    def __init__(self, url: str) -> None:
        try:
            self.url = _with_driver(make_url(url))
            self.is_sqlite = self.url.get_backend_name() == "sqlite"
            if self.is_sqlite and self.url.database:
                Path(self.url.database).parent.mkdir(parents=True, exist_ok=True)
            self.engine = _sqlite_engine(self.url) if self.is_sqlite else _postgres_engine(self.url)
        except (ArgumentError, ImportError) as error:
            extra = "; pip install 'superopt[postgres]'" if isinstance(error, ImportError) else ""
            raise BadOption(f"--database: cannot be opened: {error}{extra}") from None
        self._writer = self.engine.execution_options(**{_WRITING: True})
        # SQLite lets one writer in at a time, and gives no turns: within a process a lock does.
        self._turn = threading.Lock()

    @contextmanager
    def read(self) -> Generator[Connection]:
        with self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Generator[Connection]:
        """One transaction: all of it happens, or nothing of it."""
        with self._own_turn(), self._writer.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def _own_turn(self) -> Generator[None]:
        if self.is_sqlite and not self._turn.acquire(timeout=BUSY_SECONDS):
            raise Busy(f"nobody let us write for {BUSY_SECONDS} s")
        try:
            yield
        finally:
            if self.is_sqlite:
                self._turn.release()

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
    try:
        with database.alone():
            config.attributes["engine"] = database.engine
            command.upgrade(config, "head")
    except OperationalError as error:
        database.close()
        raise BadOption(f"--database: does not answer: {str(error.orig).strip()}") from None
    return database


def storable(told: str) -> str:
    """Text that every database takes: PostgreSQL knows no zero character, and none knows half a character."""
    return told.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def is_full(error: SQLAlchemyError) -> bool:
    """Whether the disk of the database has no room: PostgreSQL's state 53100, SQLite's SQLITE_FULL."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    return "53100" in str(getattr(cause, "sqlstate", "")) or getattr(cause, "sqlite_errorname", "") == "SQLITE_FULL"


def _with_driver(url: URL) -> URL:
    return url.set(drivername="postgresql+psycopg") if url.drivername in ("postgresql", "postgres") else url


def _postgres_engine(url: URL) -> Engine:
    if url.get_backend_name() != "postgresql":
        raise BadOption(f"--database: expected sqlite:///… or postgresql://…, found {url.get_backend_name()}://…")
    asked = {name: value for name, value in _POSTGRES.items() if name not in url.query}
    return create_engine(
        url, connect_args=asked, pool_pre_ping=True, pool_size=CONNECTIONS, max_overflow=CONNECTIONS,
        json_serializer=_json,
    )  # fmt: skip


def _json(value: Any) -> str:
    """What JSON has no word for is null: PostgreSQL refuses NaN and infinities."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {k: _finite(v) for k, v in cast(Mapping[str, Any], value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_finite(v) for v in cast(Sequence[Any], value)]
    return value


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(  # the connection used last is used next: those of a rush keep no pages and statements
        url, connect_args={"timeout": BUSY_SECONDS}, pool_size=50, max_overflow=10, pool_use_lifo=True,
        json_serializer=_json,
    )  # fmt: skip

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.isolation_level = None  # transactions begin where we say so, below
        cursor = connection.cursor()
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            f"busy_timeout={BUSY_SECONDS * 1000}",
            f"cache_size=-{CACHE_KIB}",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]
        writing = connection.get_execution_options().get(_WRITING, False)
        # Who asks for the lock only at its first write can be refused then, and would have to begin again.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine
