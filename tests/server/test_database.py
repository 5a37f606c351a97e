"""The database: migrations give the tables that the code has; writers take turns; a transaction is all or nothing."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, select, text, update

from server.database import Database, open_database, storable
from server.tables import locks, metadata, results, tenants
from superopt.errors import BadOption

if TYPE_CHECKING:
    from tests.server.postgres import Postgres

pytestmark = pytest.mark.unit


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database without tables, of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'deep' / 'test.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return server.url(server.create())


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


def test_sqlite_survives_what_it_should(tmp_path: Path) -> None:
    with open_database(f"sqlite:///{tmp_path / 'test.db'}").read() as connection:
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
                turn = connection.execute(select(locks.c.turn).with_for_update()).scalar_one()
                connection.execute(update(locks).values(turn=turn + 1))

    threads = [threading.Thread(target=count, args=(d,)) for d in databases * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with databases[0].read() as connection:
        assert connection.execute(select(locks.c.turn)).scalar_one() == 150


def test_a_url_that_makes_no_sense_is_refused() -> None:
    for url in ("nonsense", "nosuch://host/db", "mysql://host/db"):
        with pytest.raises(BadOption, match="--database: "):
            Database(url)


def test_a_server_that_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    with pytest.raises(BadOption, match="--database: does not answer: ") as refused:
        open_database(f"postgresql://somebody:secret@/db?host={tmp_path}")
    assert "secret" not in str(refused.value)


def test_what_json_has_no_word_for_is_null(url: str) -> None:
    told = {"speedup": math.nan, "of": [1.5, math.inf], "zero": "a\0b"}
    database = open_database(url)
    with database.write() as connection:
        connection.execute(insert(results).values(key="k", created=0.0, used=0.0, summary=told))
    with database.read() as connection:
        found = connection.execute(select(results.c.summary)).scalar_one()
    assert found == {"speedup": None, "of": [1.5, None], "zero": "a\0b"}
    database.close()


def test_text_that_no_database_takes_is_mended(url: str) -> None:
    database = open_database(url)
    with database.write() as connection:
        connection.execute(insert(tenants).values(name=storable("a\0\ud800b"), turn=0.0))
    with database.read() as connection:
        assert connection.execute(select(tenants.c.name)).scalar_one() == "a\N{REPLACEMENT CHARACTER}?b"
    database.close()
