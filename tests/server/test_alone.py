"""Being the only one who does something, and knowing when one no longer is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from server.alone import Alone, tried_alone
from server.database import Database
from tests.server.conftest import MakeWorld

if TYPE_CHECKING:
    from tests.server.postgres import Postgres

pytestmark = pytest.mark.unit


def test_one_at_a_time_for_each_thing(make_world: MakeWorld) -> None:
    here, there = make_world().database, make_world().database
    first, second, other = Alone(here, "this"), Alone(there, "this"), Alone(there, "that: 10.0.0.1/6379")
    assert first.take()
    assert first.holds()
    assert not second.take()
    assert not second.holds()
    assert other.take()
    first.give_back()
    assert not first.holds()
    assert second.take()
    with tried_alone(here, "this") as mine:
        assert not mine
    second.give_back()
    with tried_alone(here, "this") as mine:
        assert mine
    other.give_back()


def test_what_a_broken_connection_held_is_free(postgres: Postgres) -> None:
    url = postgres.url(postgres.create())
    database = Database(url)
    alone, other = Alone(database, "this"), Alone(Database(url), "this")
    assert alone.take()
    with database.write() as connection:
        others = "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()"
        connection.execute(text(f"{others} and datname = current_database()"))
    assert not alone.holds()
    assert other.take()
    alone.give_back()
    assert not alone.take()
    other.give_back()
