"""The cost file that a caller names, in either form: a database that grows, or one that only answers.

A text file that was exported, and a database that may not be written to, are read into memory: what is measured besides
serves the run and is then forgotten.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from superopt.cost.cache import CostCache
from superopt.cost.contents import Contents
from superopt.cost.portable import TEXT, is_portable, read_portable
from superopt.errors import BadOption

MEMORY = Path(":memory:")


class Costs:
    def __init__(self, file: Path) -> None:
        if file.suffix == TEXT and not file.exists():
            raise BadOption(f"{file}: there is no such exported file; one to measure into must not end in {TEXT}")
        self.file = file
        self.grows = not is_portable(file) and _is_writable(file)

    @contextmanager
    def opened(self) -> Generator[CostCache]:
        if not self.grows:
            yield self._in_memory
            return
        with CostCache(self.file) as cache:
            yield cache

    def contents(self) -> Contents:
        with self.opened() as cache:
            return Contents.of(cache.region_entries(), cache.entries())

    @cached_property
    def _in_memory(self) -> CostCache:
        if not is_portable(self.file):
            return CostCache(self.file, copied=True)
        contents = read_portable(self.file)
        cache = CostCache(MEMORY)
        cache.add_all(contents.regions.values(), contents.comparisons.values())
        return cache


def read_costs(file: Path) -> Contents:
    """What a file holds, which must be there: to look at it makes no new one."""
    if not file.is_file():
        raise BadOption(f"{file}: there is no such cost file")
    return Costs(file).contents()


def _is_writable(file: Path) -> bool:
    """The folder too: a database keeps a journal beside it. What is not there yet can only be made."""
    return not file.exists() or (os.access(file, os.W_OK) and os.access(file.absolute().parent, os.W_OK))
