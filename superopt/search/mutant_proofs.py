"""Rules that began as mutants, proved again: their text is all that is believed to be theirs."""

from __future__ import annotations

from superopt.errors import BadInput
from superopt.ir.graph import Graph
from superopt.ops.evaluate import Unsupported
from superopt.ops.formula import Illegal, NotCovered
from superopt.ops.registry import Registry
from superopt.partial.corrected import described_again, proved_again
from superopt.partial.families import BY_NAME
from superopt.partial.lost import loses_nan
from superopt.partial.program import GivenUp
from superopt.partial.proofs import BY_LEMMAS, Proofs
from superopt.report import OwnRule
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.rule import PARTIAL, Rule
from superopt.rewrite.ruleset import digest
from superopt.rewrite.text import parse_rules
from superopt.search.mutating import programs
from superopt.verify.prove import SOLVER, Verdict

SECONDS = 60.0
"""For each proof, by the clock on the wall: a machine may be slower than the one that found it."""


def follows_from_others(rule: Rule) -> bool:
    """Whether a rule's proof is by rules that it follows from: too long to be proved at once."""
    return rule.proof is not None and rule.proof.solver.endswith(BY_LEMMAS)


def solver(rule: Rule) -> str:
    """Who proves the rule here, as its proof will tell."""
    return f"{SOLVER}{BY_LEMMAS if follows_from_others(rule) else ''}"


class MutantProver:
    """What was proved for one mutant is not proved again for the next."""

    def __init__(self, registry: Registry, seconds: float = SECONDS) -> None:
        self._proofs = Proofs(registry, seconds)

    def verdict(self, rule: Rule) -> Verdict:
        """Proved as a rule is: true of numbers, and no NaN gets lost."""
        try:
            verdict = proved_again(rule, self._proofs)
            if verdict.status == "proved" and loses_nan(rule, self._proofs.registry):
                return Verdict("refuted", "true for numbers only, a NaN would get lost", verdict.cases, verdict.seconds)
        except (Illegal, NotCovered, Unsupported, GivenUp) as why:
            return Verdict("unknown", str(why), 0, 0.0)
        except RecursionError:
            return Verdict("unknown", "too deeply nested", 0, 0.0)
        return verdict

    def confirm(self, told: OwnRule) -> Rule | str:
        """The rule that a report tells of, proved again here; or what is wrong with it."""
        try:
            rule = _as_told(told, self._proofs.registry)
        except BadInput as problem:
            return f"mutant {told.name}: {str(problem).splitlines()[0]}"
        except RecursionError:
            return f"mutant {told.name}: its text is too deeply nested"
        verdict = self.verdict(rule)
        if verdict.status != "proved":
            return f"mutant {told.name}: could not be proved again: {verdict.status}, {verdict.reason}"
        return rule


def misdescribed(rule: Rule, top: Graph, rewriter: Rewriter) -> str:
    """What is wrong with what a mutant says of itself, such as the part that it mends; empty where nothing is.

    Its family makes it again of the programs of a graph, as the search did, and says what it is.
    """
    meant = ""
    for meant in described_again(rule, programs(top, rewriter), rewriter.reader.registry):
        if rule.doc == meant:
            return ""
    if not meant:
        return f"mutant {rule.name}: its family makes no such mutant of any program of the model"
    return f"mutant {rule.name}: says {rule.doc!r} of itself, expected {meant!r}"


def _as_told(told: OwnRule, registry: Registry) -> Rule:
    """The rule in the text, if it says of itself what such a rule says, and what the report says of it."""
    found = parse_rules(told.text, "its text")
    if len(found) != 1:
        raise BadInput(f"its text has {len(found)} rules, expected one")
    (rule,) = found
    if rule.name != told.name:
        raise BadInput(f"its text is that of the rule {rule.name}")
    kind, _, family = rule.origin.partition(" ")
    if kind != PARTIAL or family not in BY_NAME:
        raise BadInput(f"is no mutant, its origin is {rule.origin!r}, expected {PARTIAL} and a family")
    if rule.where or rule.finite or rule.blocks or any(g.kind != "tensor" for g in rule.given):
        raise BadInput("has conditions, as no mutant has")
    own = digest(rule, registry)
    if rule.proof is None or rule.proof.verdict != "unbounded":
        raise BadInput("its text tells of no proof")
    if rule.proof.digest != own:
        raise BadInput(f"its proof is of another text: digest {rule.proof.digest}, as it stands it has {own}")
    if told.digest != own:
        raise BadInput(f"the report tells of digest {told.digest}, as it stands it has {own}")
    if rule.name != f"{PARTIAL}-{family}-{own}":
        raise BadInput(f"is called after something else, expected {PARTIAL}-{family}-{own}")
    return rule
