"""A result is given up while others are about to use it: whoever comes second sees what the first one did."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pytest
from sqlalchemy import Connection, func, insert, select

from server import results
from server.records import MODEL, File
from server.retention import expire
from server.tables import jobs
from server.tables import results as rows
from tests.server.conftest import MakeWorld
from tests.server.world import SUMMARY, World

pytestmark = pytest.mark.unit

A = TypeVar("A")
B = TypeVar("B")
KEY = "k" * 64
LONG_ENOUGH = 0.3
"""Seconds for the second one to come as far as it can while the first one is not at its end."""


def write_result(world: World, connection: Connection) -> bool:
    return results.record(world.database, connection, KEY, (File(MODEL, "0" * 64, 1),), SUMMARY, 1.0)


def use_result(connection: Connection) -> None:
    assert results.find(connection, [KEY]) == KEY
    values = {"tenant": "a", "state": "done", "request": "r", "target": "cpu", "options": {}, "result": KEY}
    connection.execute(insert(jobs).values(id="job", created=1.0, queued=1.0, **values))


def forget(connection: Connection) -> int:
    return results.forget_unused(connection, before=9e9, only=KEY)


def count(world: World) -> int:
    with world.database.read() as connection:
        return connection.execute(select(func.count()).select_from(rows)).scalar_one()


def one_behind_the_other(
    make_world: MakeWorld, first: Callable[[Connection], A], second: Callable[[Connection], B]
) -> tuple[A, B]:
    """The second one begins when the first one has done its work and has not yet ended."""
    worlds = make_world(), make_world()

    def behind() -> B:
        with worlds[1].database.write() as connection:
            return second(connection)

    with ThreadPoolExecutor(1) as pool:
        with worlds[0].database.write() as connection:
            did = first(connection)
            waits: Future[B] = pool.submit(behind)
            time.sleep(LONG_ENOUGH)
        return did, waits.result(60)


def test_a_result_that_is_about_to_be_used_is_not_given_up(make_world: MakeWorld) -> None:
    world = make_world()
    with world.database.write() as connection:
        assert write_result(world, connection)
    _, forgotten = one_behind_the_other(make_world, use_result, forget)
    assert (forgotten, count(world)) == (0, 1)


def test_a_result_that_is_about_to_be_given_up_is_written_again(make_world: MakeWorld) -> None:
    world = make_world()
    with world.database.write() as connection:
        assert write_result(world, connection)
    forgotten, new = one_behind_the_other(make_world, forget, lambda c: write_result(world, c))
    assert (forgotten, new, count(world)) == (1, True, 1)


def test_what_nobody_uses_is_given_up(make_world: MakeWorld) -> None:
    world = make_world()
    with world.database.write() as connection:
        write_result(world, connection)
        assert results.forget_unused(connection, before=0.5) == 0
        assert results.forget_unused(connection, before=2.0) == 1
    assert count(world) == 0


def test_many_are_given_up_a_few_at_a_time(make_world: MakeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "AT_ONCE", 2)
    world = make_world()
    with world.database.write() as connection:
        for i in range(5):
            connection.execute(insert(rows).values(key=f"{i}", created=1.0, used=1.0, summary={}))
    expire(world.database, world.blobs, retention=3600.0)
    assert count(world) == 0
