"""Rules that were mined from a model, proved again: their text is all that is believed to be theirs."""

from __future__ import annotations

from superopt.errors import BadInput
from superopt.generate.infinite import makes_nan
from superopt.ops.registry import Registry
from superopt.report import OwnRule
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import digest
from superopt.rewrite.text import parse_rules
from superopt.search.mining import MINED
from superopt.verify.prove import prove

SECONDS = 120.0
"""For each proof, by the clock on the wall: a machine may be slower than the one that found it."""


def confirm_mined(told: OwnRule, registry: Registry) -> Rule | str:
    """The rule that a report tells of, proved again here; or what is wrong with it."""
    try:
        rule = _as_told(told, registry)
        verdict = prove(rule, registry, seconds=SECONDS)
    except BadInput as problem:
        return f"mined rule {told.name}: {str(problem).splitlines()[0]}"
    except RecursionError:
        return f"mined rule {told.name}: its text is too deeply nested"
    if verdict.status != "proved":
        return f"mined rule {told.name}: could not be proved again: {verdict.status}, {verdict.reason}"
    if makes_nan(rule, registry):
        return f"mined rule {told.name}: makes a NaN of an infinite number"
    return rule


def _as_told(told: OwnRule, registry: Registry) -> Rule:
    """The rule in the text, if it says of itself what such a rule says, and what the report says of it."""
    found = parse_rules(told.text, "its text")
    if len(found) != 1:
        raise BadInput(f"its text has {len(found)} rules, expected one")
    (rule,) = found
    if rule.name != told.name:
        raise BadInput(f"its text is that of the rule {rule.name}")
    if not rule.origin.startswith(f"{MINED} "):
        raise BadInput(f"was not mined, its origin is {rule.origin!r}")
    if rule.finite or rule.is_partial:
        raise BadInput("is true of some numbers only, as no mined rule is")
    own = digest(rule, registry)
    if rule.proof is None or rule.proof.verdict != "unbounded" or rule.proof.digest != own:
        raise BadInput("its text tells of no proof of it as it stands")
    if told.digest != own:
        raise BadInput(f"the report tells of digest {told.digest}, as it stands it has {own}")
    return rule
