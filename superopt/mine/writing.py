"""What was mined, as a file of rules: the same bytes for the same findings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path

from superopt.generate.naming import named
from superopt.mine.mine import Counts, Mined
from superopt.ops.registry import Registry
from superopt.rewrite.ruleset import proved
from superopt.rewrite.text import format_meaning, format_rule
from superopt.verify.prove import SOLVER
from superopt.version import __version__


def write(name: str, mined: Iterable[Mined], counts: Counts, path: Path, registry: Registry) -> int:
    """The file, whole or not at all; how many rules it has."""
    by_text = {format_meaning(m.rule): m for m in mined}
    rules = named(name, (replace(m.rule, origin=f"mined {m.origin}") for m in by_text.values()))
    rules = sorted((proved(r, registry, "unbounded", SOLVER) for r in rules), key=lambda r: r.name)
    told = ", ".join(f"{value:,} {key}" for key, value in asdict(counts).items())
    head = (
        f"# Mined from models: {len(rules)} rules, all proved. Edits here are lost.\n"
        f"#   superopt {__version__}, {SOLVER}\n#   {told}\n"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}.new")
    staged.write_text("\n".join((head, *map(format_rule, rules))), encoding="utf-8")
    os.replace(staged, path)
    return len(rules)
