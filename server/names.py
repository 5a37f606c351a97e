"""Names of external data files: relative, inside the upload, and nothing that a file system could read differently."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from server.problems import Problem
from server.records import GRAPHS, MODEL, REPORT

LONGEST, LONGEST_PART, DEEPEST = 512, 200, 8
_SHOWN = 100


def safe_name(name: str) -> str:
    """The name as it will lie beside the model; a name that could leave the folder, or be misread, is refused."""
    parts = PurePosixPath(name).parts
    wrong = (
        not parts
        or name.startswith("/")
        or len(name.encode()) > LONGEST
        or len(parts) > DEEPEST
        or any(len(p.encode()) > LONGEST_PART for p in parts)
        or any(p in ("..", "~") for p in parts)
        or any(c in '\\:*?"<>|' or not c.isprintable() for c in name)
    )
    if wrong:
        raise Problem(422, f"external data {name[:_SHOWN]!r}: expected a file name inside the upload")
    plain = "/".join(parts)
    if plain.lower() in (MODEL, REPORT, GRAPHS):
        raise Problem(422, f"external data {plain!r}: the service keeps a file of that name itself")
    return plain


def refuse_overlap(names: Iterable[str]) -> None:
    """`a` and `a/b` cannot lie side by side."""
    known = set(names)
    for name in known:
        for folder in PurePosixPath(name).parents:
            if str(folder) in known:
                raise Problem(422, f"external data {name!r}: {str(folder)!r} cannot be both a file and a folder")
