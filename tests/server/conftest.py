"""What the tests of the service share."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.server.shop import Shop
from tests.server.world import World


@pytest.fixture
def world(tmp_path: Path) -> Generator[World]:
    made = World(tmp_path)
    yield made
    made.database.close()


@pytest.fixture
def shop(tmp_path: Path) -> Generator[Shop]:
    """Without a worker; `hire` brings one."""
    made = Shop(tmp_path)
    yield made
    made.close()
