"""Models as files: moved into place whole, never half written. Knows nothing of what is in them."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from superopt.errors import CannotWrite

CHUNK = 1 << 22


@dataclass(frozen=True)
class Written:
    """A model on disk: the file, and the data files beside it."""

    path: Path
    data_files: tuple[str, ...]

    @property
    def total_bytes(self) -> int:
        return sum(p.stat().st_size for p in (self.path, *(self.path.parent / d for d in self.data_files)))


def place(staged: Written, out: Path) -> Written:
    """Move a staged model to `out`, data first, so that whoever opens `out` finds all of it."""
    with clear_write_errors(out):
        missing = [name for name in staged.data_files if not _is_there(staged.path.parent / name, out.parent / name)]
        for name in missing:
            (out.parent / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(staged.path.parent / name, out.parent / name)
        os.replace(staged.path, out)
    return Written(out, staged.data_files)


def _is_there(staged: Path, target: Path) -> bool:
    """Whether a data file lies there already; one with other content belongs to somebody else."""
    if not target.exists():
        return False
    if _same_content(staged, target):
        return True
    raise CannotWrite(f"{target}: exists with other content, and the model needs a data file of that name")


def refuse_unwritable(path: Path, what: str) -> None:
    """Raise now what writing `path` would raise later, and leave nothing behind."""
    if path.is_dir():
        raise CannotWrite(f"{path}: is a folder, expected a file name for {what}")
    if not path.parent.is_dir():
        raise CannotWrite(f"{path}: the folder {path.parent} does not exist")
    existed = path.exists()
    if existed and not path.is_file():
        return  # a pipe or a device: to open it is to use it
    with clear_write_errors(path):
        with open(path, "ab"):
            pass
        if not existed:
            path.unlink()


def free_data_name(out: Path) -> str:
    """A name for the data file of `out` that no file has yet: an older result must stay whole until it is replaced."""
    candidate, count = f"{out.name}.data", 1
    while (out.parent / candidate).exists():
        count += 1
        candidate = f"{out.name}.{count}.data"
    return candidate


@contextmanager
def clear_write_errors(path: Path) -> Generator[None]:
    """Operating system errors as one clear line."""
    try:
        yield
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error))
        raise CannotWrite(f"{path}: cannot be written: {reason}") from None


def _same_content(a: Path, b: Path) -> bool:
    if b.is_dir() or a.stat().st_size != b.stat().st_size:
        return False
    with open(a, "rb") as f, open(b, "rb") as g:
        while True:
            x, y = f.read(CHUNK), g.read(CHUNK)
            if x != y:
                return False
            if not x:
                return True
