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
        for name in staged.data_files:
            target = out.parent / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists() and _same_content(staged.path.parent / name, target):
                continue
            if target.exists():
                raise CannotWrite(f"{target}: exists with other content, and the model needs a data file of that name")
            os.replace(staged.path.parent / name, target)
        os.replace(staged.path, out)
    return Written(out, staged.data_files)


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
