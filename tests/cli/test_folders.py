"""Folders that a command writes into."""

from __future__ import annotations

from pathlib import Path

import pytest

from superopt.cli.folders import made
from superopt.errors import BadOption

pytestmark = pytest.mark.unit


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    assert made(tmp_path / "a" / "b").is_dir()
    assert made(tmp_path / "a").is_dir()


def test_a_file_in_its_place_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(BadOption, match=r"--out .*file"):
            made(place)
