"""What was found, as files of rules: the same bytes for the same findings."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from superopt.errors import BadInput
from superopt.generate.naming import named
from superopt.ops.registry import Registry
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import proved
from superopt.rewrite.text import format_meaning, format_rule, parse_rules
from superopt.verify.prove import SOLVER
from superopt.version import __version__

UPHILL = " uphill"
"""Ends the origin of a rule that stays though it saves nothing."""


@dataclass(frozen=True)
class Finding:
    """A proved rule, and where it was found."""

    rule: Rule
    scene: str
    macro: bool = False
    """It leads over a hill: a step in between costs more than either end."""
    uphill: bool = False
    """Its scene wants what counts as much or more: that it saves nothing is no reason to leave it out."""


@dataclass(frozen=True)
class Provenance:
    """How a file of rules came about; no dates and no paths, so that the same run writes the same file."""

    recipe: str
    seed: int
    command: str
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many graphs, candidates, rules there were after each step, in its order."""


def write(provenance: Provenance, findings: Iterable[Finding], folder: Path, registry: Registry) -> Path:
    """`RECIPE.rules` in the folder, whole or not at all. Of findings that say the same, one is written."""
    by_text: dict[str, Finding] = {}
    for finding in findings:
        first = by_text.setdefault(format_meaning(finding.rule), finding)
        if finding.macro and not first.macro:
            by_text[format_meaning(finding.rule)] = replace(first, macro=True)
    rules = named(provenance.recipe, (_told(f, provenance) for f in by_text.values()))
    rules = sorted((proved(r, registry, "unbounded", SOLVER) for r in rules), key=lambda r: r.name)
    text = "\n".join((_header(provenance, len(rules)), *map(format_rule, rules)))
    if len(parse_rules(text)) != len(rules):
        raise BadInput(f"{provenance.recipe}: what was written does not read as it was meant")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{provenance.recipe}.rules"
    staged = path.with_name(f".{path.name}.new")
    staged.write_text(text, encoding="utf-8")
    os.replace(staged, path)
    return path


_TAKEN_OUT = "that other files do as well, or that save nothing"


def take_out(path: Path, names: Collection[str]) -> None:
    """The file without the rules of these names; its header says how many there are, and how many others do."""
    head, *blocks = re.split(r"^(?=rule )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    left = [block for block in blocks if block.split()[1] not in names]
    head = re.sub(r": [\d,]+ rules,", f": {len(left)} rules,", head, count=1)
    before = re.search(f"^#   {_TAKEN_OUT}: ([\\d,]+)\n", head, flags=re.MULTILINE)
    count = len(blocks) - len(left)
    if before is not None:
        head, count = head.replace(before[0], ""), count + int(before[1].replace(",", ""))
    head = head.rstrip("\n") + f"\n#   {_TAKEN_OUT}: {count:,}\n\n"
    staged = path.with_name(f".{path.name}.new")
    staged.write_text(head + "".join(left), encoding="utf-8")
    os.replace(staged, path)


def _told(finding: Finding, provenance: Provenance) -> Rule:
    origin = f"generated recipe={provenance.recipe} scene={finding.scene} seed={provenance.seed}"
    return replace(
        finding.rule, origin=origin + (" macro" if finding.macro else "") + (UPHILL if finding.uphill else "")
    )


def _header(provenance: Provenance, count: int) -> str:
    lines = [
        f"Found by machine, recipe {provenance.recipe}: {count} rules, all proved. Edits here are lost.",
        f"  {provenance.command}",
        f"  superopt {__version__}, {SOLVER}, seed {provenance.seed}",
        *(f"  {name}: {number:,}" for name, number in provenance.counts.items()),
    ]
    return "".join(f"# {line}\n" for line in lines)
