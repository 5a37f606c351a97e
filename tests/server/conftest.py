"""What the tests of the service share."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from server.database import open_database
from tests.server.shop import Shop
from tests.server.world import World

if TYPE_CHECKING:
    from tests.server.postgres import Postgres

MakeWorld: TypeAlias = Callable[..., World]


@pytest.fixture(scope="session")
def postgres() -> Generator[Postgres]:
    """A server that runs as long as the tests; skipped where PostgreSQL or its driver is not installed."""
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    from tests.server.postgres import Postgres, programs, short_folder

    programs()
    folder = short_folder()
    try:
        with Postgres(folder) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def migrated(postgres: Postgres) -> str:
    """A database with its tables, for others to begin like it."""
    name = postgres.create()
    open_database(postgres.url(name)).close()
    return name


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[str]:
    """Of a database of the test's own, of either kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'test.db'}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    name = server.create(like=request.getfixturevalue("migrated"))
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def make_world(tmp_path: Path, database_url: str) -> Generator[MakeWorld]:
    made: list[World] = []

    def make(**settings: Any) -> World:
        made.append(World(tmp_path, database_url, **settings))
        return made[-1]

    yield make
    for world in made:
        world.database.close()


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world()


@pytest.fixture
def shop(tmp_path: Path) -> Generator[Shop]:
    """Without a worker; `hire` brings one."""
    made = Shop(tmp_path)
    yield made
    made.close()
