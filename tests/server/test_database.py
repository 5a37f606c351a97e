"""The database: migrations give the tables that the code has; writers take turns; a transaction is all or nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import select, text, update

from server.database import Database, open_database
from server.tables import locks, metadata
from superopt.errors import BadOption

pytestmark = pytest.mark.unit


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'deep' / 'test.db'}"


def test_migrations_lead_to_the_tables_of_the_code(url: str) -> None:
    database = open_database(url)
    with database.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    open_database(url).close()  # a second start changes nothing
    with database.read() as connection:
        assert connection.execute(select(locks.c.name, locks.c.turn)).all() == [("queue", 0)]


def test_several_processes_may_start_at_once(url: str) -> None:
    failures: list[Exception] = []

    def start() -> None:
        try:
            open_database(url).close()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_sqlite_survives_what_it_should(url: str) -> None:
    with open_database(url).read() as connection:
        pragmas = {p: connection.execute(text(f"pragma {p}")).scalar_one() for p in ("journal_mode", "synchronous")}
        assert pragmas == {"journal_mode": "wal", "synchronous": 2}
        assert connection.execute(text("pragma foreign_keys")).scalar_one() == 1


def test_a_transaction_that_fails_leaves_nothing(url: str) -> None:
    database = open_database(url)

    def fail() -> None:
        with database.write() as connection:
            connection.execute(update(locks).values(turn=7))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with database.read() as connection:
        assert connection.execute(select(locks.c.turn)).scalar_one() == 0


def test_writers_of_several_threads_and_connections_wait_for_each_other(url: str) -> None:
    databases = [open_database(url), Database(url)]

    def count(database: Database) -> None:
        for _ in range(25):
            with database.write() as connection:
                turn = connection.execute(select(locks.c.turn)).scalar_one()
                connection.execute(update(locks).values(turn=turn + 1))

    threads = [threading.Thread(target=count, args=(d,)) for d in databases * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with databases[0].read() as connection:
        assert connection.execute(select(locks.c.turn)).scalar_one() == 150


def test_a_url_that_makes_no_sense_is_refused() -> None:
    for url in ("nonsense", "nosuch://host/db"):
        with pytest.raises(BadOption, match="--database: cannot be opened"):
            Database(url)
