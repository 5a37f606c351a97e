"""Costs taken out of files and put into new ones."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from superopt.cost.cache import CostCache
from superopt.cost.contents import Contents
from superopt.cost.machine import fitting_machines
from superopt.cost.portable import TEXT, write_portable
from superopt.ir.files import clear_write_errors


def of_devices(contents: Contents, wanted: str, where: str) -> Contents:
    """What is of machines with this in their text; of all of them where nothing is wanted."""
    return contents.of_machines(fitting_machines(contents.machines, wanted, where))


def write_costs(contents: Contents, out: Path) -> None:
    """As text, or as a database that can be added to; whole or not at all."""
    if out.suffix == TEXT:
        write_portable(contents, out)
        return
    with clear_write_errors(out), tempfile.TemporaryDirectory(prefix=f".{out.name[:40]}.", dir=out.parent) as folder:
        staged = Path(folder) / out.name
        with CostCache(staged) as cache:
            cache.add_all(contents.regions.values(), contents.comparisons.values())
        os.replace(staged, out)
