# pyright: basic
"""A result that rules made, to be held against its report; and the shipped rules, read once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from superopt.search.rulebook import open_rulebook
from tests.search.rewritten import AUDITED_RULES, Rewritten, book, convolutions, rewrite


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
    for path in (made.original, made.optimized, made.report):
        shutil.copyfile(path, tmp_path / path.name)
    return Rewritten(*(tmp_path / path.name for path in (made.original, made.optimized, made.report)))
