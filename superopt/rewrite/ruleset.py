"""Sets of rules: those that ship, those a user brings, and which of them are proved."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import specs
from superopt.errors import BadInput
from superopt.ops.registry import Registry
from superopt.rewrite.program import find_operator
from superopt.rewrite.remembered import read_rules
from superopt.rewrite.rule import Proof, Rule

SHIPPED = Path(specs.__file__).resolve().parent.parent / "rules"

LATE = SHIPPED / "late.rules"
"""What is asked for by name once a search is over; during it nobody looks for these."""

State = Literal["proved", "stale", "unproved"]


def rule_files(given: Iterable[Path] = ()) -> list[Path]:
    """The files asked for, folders searched; without any, those that ship."""
    found: list[Path] = []
    for path in tuple(given) or (SHIPPED,):
        if path.is_dir():
            found += sorted(path.rglob("*.rules"))
        elif path.exists():
            found.append(path)
        else:
            raise BadInput(f"{path}: no such file or folder of rules")
    return found


def load_rules(files: Iterable[Path], *, repeated: bool = False) -> list[Rule]:
    """All rules of the files; a name stands for one rule only. Where it may be `repeated`, as what was mined from a
    model repeats what ships, a rule that a further file says again counts once."""
    rules: list[Rule] = []
    seen: dict[str, Rule] = {}
    for path in files:
        for rule in read_rules(path):
            if (first := seen.get(rule.name)) is not None:
                if repeated and first.meaning == rule.meaning:
                    continue
                where = f"{first.source}:{first.line}"
                raise BadInput(f"{rule.source}:{rule.line}: the name {rule.name!r} is taken by {where}")
            seen[rule.name] = rule
            rules.append(rule)
    return rules


def digest(rule: Rule, registry: Registry) -> str:
    """Over what the rule says and what its operators mean; a proof holds for exactly that."""
    formulas = sorted({find_operator(op, domain, registry).digest for op, domain in rule.operators})
    return hashlib.sha256("\n".join((rule.meaning, *formulas)).encode()).hexdigest()[:12]


def state(rule: Rule, registry: Registry) -> State:
    """Proved as it stands, proved before an edit, or never."""
    if rule.proof is None or rule.proof.verdict != "unbounded":
        return "unproved"
    return "proved" if rule.proof.digest == digest(rule, registry) else "stale"


def proved(rule: Rule, registry: Registry, verdict: str, solver: str) -> Rule:
    return replace(rule, proof=Proof(verdict, solver, digest(rule, registry)))


def rewrite_proofs(path: Path, rules: Iterable[Rule]) -> None:
    """Put the rules' proof lines into their file and leave everything else of it as it is."""
    by_name = {rule.name: rule for rule in rules}
    out: list[str] = []
    current: Rule | None = None
    for line in path.read_text(encoding="utf-8").split("\n"):
        words = line.split()
        if line.startswith("rule "):
            current = by_name.get(words[1])
            out.append(line)
            continue
        if current is not None and words[:1] == ["proof"] and line.startswith(" "):
            continue
        if current is not None and words and words[0] not in ("doc", "origin", "#"):
            if current.proof is not None:
                out.append(f"  proof   {current.proof}")
            current = None
        out.append(line)
    staged = path.with_name(f".{path.name}.new")
    staged.write_text("\n".join(out), encoding="utf-8")
    os.replace(staged, path)
