"""Mutants that a report tells of, proved again: their text is all that is believed to be theirs."""

from __future__ import annotations

from superopt.errors import BadInput
from superopt.ops.registry import Registry
from superopt.partial.corrected import proved_again
from superopt.partial.proofs import Proofs
from superopt.report import MutantRule
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import state
from superopt.rewrite.text import parse_rules

SECONDS = 60.0
"""CPU seconds for each proof: a machine may be slower than the one that found it."""


def confirm_mutant(told: MutantRule, registry: Registry) -> Rule | str:
    """The rule, proved again here; or what is wrong with it."""
    try:
        found = parse_rules(told.text, "report")
    except BadInput as error:
        return f"mutant {told.name}: {error}"
    if len(found) != 1 or found[0].name != told.name:
        return f"mutant {told.name}: its text is another rule's"
    (rule,) = found
    if not rule.is_partial or rule.finite:
        return f"mutant {told.name}: is none"
    if state(rule, registry) != "proved" or rule.proof is None or rule.proof.digest != told.digest:
        return f"mutant {told.name}: its proof is of another text"
    verdict = proved_again(rule, Proofs(registry, SECONDS))
    if verdict.status != "proved":
        return f"mutant {told.name}: could not be proved again: {verdict.status}, {verdict.reason}"
    return rule
