"""Costs taken out of files and put into new ones."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from superopt.cost.cache import CostCache
from superopt.cost.contents import Contents
from superopt.cost.portable import TEXT, write_portable
from superopt.errors import BadOption
from superopt.ir.files import clear_write_errors


def of_devices(contents: Contents, wanted: str, where: str) -> Contents:
    """What is of machines with this in their text; of all of them where nothing is wanted."""
    fitting = [machine for machine in contents.machines if wanted.casefold() in machine.text.casefold()]
    if wanted and not fitting:
        known = "; ".join(machine.text for machine in contents.machines) or "none"
        raise BadOption(f"--device {wanted}: {where} holds no costs of it, but of: {known}")
    return contents.of_machines(fitting)


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
