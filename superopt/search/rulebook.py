"""The rules that a search may use: those that ship and the user's own, if they are proved as they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import specs
from superopt.ops.registry import Registry
from superopt.rewrite.remembered import without_collection
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import LATE, digest, load_rules, rule_files, state


@dataclass(frozen=True)
class Rulebook:
    registry: Registry
    rules: Rules
    digests: dict[str, str]
    proofs: dict[str, str]
    unusable: dict[str, str]
    """Why a rule is left out, by its name."""
    notes: tuple[str, ...]

    def add(self, rule: Rule) -> None:
        """One more, which was just proved."""
        self.rules.add(rule)
        self.digests[rule.name] = digest(rule, self.registry)
        self.proofs[rule.name] = str(rule.proof)


def open_rulebook(files: Sequence[Path] = (), definitions: Sequence[Path] = ()) -> Rulebook:
    """A rule that is unproved, or was proved before an edit, is left out and noted; so is one that may lose a NaN.

    `definitions`: folders of further operators.
    """
    with without_collection():
        return _opened(files, definitions)


def _opened(files: Sequence[Path], definitions: Sequence[Path]) -> Rulebook:
    registry = specs.load(*definitions)
    shipped = rule_files()
    rules = load_rules([*shipped, *(rule_files(files) if files else ())], repeated=True)
    usable: list[Rule] = []
    unusable: dict[str, str] = {}
    left_out: dict[str, list[Rule]] = {}
    for rule in rules:
        found = state(rule, registry)
        if found != "proved":
            left_out.setdefault(found, []).append(rule)
            unusable[rule.name] = found
        elif rule.finite:
            unusable[rule.name] = "off, because it may lose a NaN"
        else:
            usable.append(rule)
    digests = {rule.name: rule.proof.digest for rule in usable if rule.proof is not None}
    proofs = {rule.name: str(rule.proof) for rule in usable}
    notes = tuple(_note(found, group) for found, group in left_out.items())
    return Rulebook(registry, _compiled(usable, shipped, registry), digests, proofs, unusable, notes)


def _compiled(usable: Sequence[Rule], shipped: Sequence[Path], registry: Registry) -> Rules:
    late, ours = str(LATE), {str(path) for path in shipped}
    found = Rules((), registry)
    found.add_later(rule for rule in usable if rule.source in ours and rule.source != late)
    for rule in usable:
        if rule.source not in ours:
            found.add(rule)
    for rule in usable:
        if rule.source == late:
            found.add_late(rule)
    return found


def _note(found: str, rules: Sequence[Rule]) -> str:
    first = f"{rules[0].name} ({rules[0].source}:{rules[0].line})"
    names = first if len(rules) == 1 else f"{first} and {len(rules) - 1} more"
    return f"not used because {found}: {names}; superopt rules verify proves them"
