# pyright: basic
"""A result that rules made, to be held against its report; the shipped rules, read once; mutants of one family."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from superopt.search.rulebook import open_rulebook
from tests.search.counted import World, counting_world
from tests.search.rewritten import AUDITED_RULES, Rewritten, book, convolutions, rewrite


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return counting_world(monkeypatch)


@pytest.fixture
def rules_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading and compiling all rules takes a second or two; those that ship do not change between tests."""

    def opened(files=(), definitions=()):
        return open_rulebook(files, definitions) if files or definitions else book()

    monkeypatch.setattr("superopt.search.audit.open_rulebook", opened)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Rewritten:
    return rewrite(tmp_path_factory.mktemp("made"), convolutions(), AUDITED_RULES)


@pytest.fixture
def result(made: Rewritten, tmp_path: Path) -> Rewritten:
    """A copy to tamper with."""
    return made.copied(tmp_path)


@pytest.fixture(scope="session")
def made_of_mutants(tmp_path_factory: pytest.TempPathFactory) -> Rewritten:
    from tests.search.mutant_reports import made_of_mutants  # with z3, which most tests here do not need

    return made_of_mutants(tmp_path_factory.mktemp("mutants"))


@pytest.fixture
def canvases_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the other families would only take their time."""
    from superopt.partial.corrected import mutants  # with z3 as well
    from superopt.partial.families import canvases

    monkeypatch.setattr("superopt.search.mutants.mutants", partial(mutants, families=(canvases,)))
