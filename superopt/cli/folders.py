"""Folders that a command writes into."""

from __future__ import annotations

from pathlib import Path

from superopt.errors import BadOption


def made(folder: Path) -> Path:
    """The folder, there from now on; one that cannot be is refused before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadOption(f"--out {folder}: {error.strerror}") from None
    return folder
