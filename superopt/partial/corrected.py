"""From a program to others that compute the same: mutants, mended where they are wrong, and proved.

A mutant is found to be right everywhere, or wrong in boxes that are mended; either way what comes out is a rule, proved
as a whole by the prover that every rule goes through, which does not know how it was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from superopt.ops.evaluate import Unsupported
from superopt.ops.formula import Illegal, NotCovered
from superopt.ops.registry import Registry
from superopt.partial.derivation import Use
from superopt.partial.differ import Disagreement, Wrong, seen_wrong, wrong
from superopt.partial.families import BY_NAME, FAMILIES, Family
from superopt.partial.lost import loses_nan
from superopt.partial.mend import mendings
from superopt.partial.program import GivenUp, Mutant, Original, shapes
from superopt.partial.proofs import Proofs
from superopt.partial.terms import Terms
from superopt.rewrite.rule import PARTIAL, Call, Rule, Step
from superopt.rewrite.text import format_meaning
from superopt.verify.agree import Box
from superopt.verify.prove import Verdict

LARGEST_SHARE = 0.5
"""Part of the results that may be wrong; mending more than that is computing it all again."""

SAMPLE = 2
"""What symbols are while a rule is mutated again: those that a derivation depends on are numbers."""

Tell = Callable[[str, str], None]


@dataclass(frozen=True)
class Corrected:
    """A program that computes the same, found as a mutant."""

    family: str
    rule: Rule
    """From the original to the mutant with its corrections, with its proof."""
    boxes: Mapping[str, tuple[Box, ...]]
    """What was mended of each result, where symbols are as in `sizes`; nothing where the mutant was made right."""
    share: float
    """Part of the results that was mended."""
    sizes: Mapping[str, int]
    verdict: Verdict
    lemmas: tuple[Rule, ...] = ()
    """Rules, with their proofs, that it was derived from; none where it was proved at once."""


def corrected_mutants(
    original: Original,
    registry: Registry,
    *,
    families: Sequence[Family] = FAMILIES,
    share: float = LARGEST_SHARE,
    proofs: Proofs | None = None,
    tell: Tell = lambda _, __: None,
) -> Iterator[Corrected]:
    """All that the families make of a program and that can be proved, each once.

    `proofs` remembers from one program to the next; `tell` hears what was given up and why, and of bugs.
    """
    proofs = proofs or Proofs(registry)
    for mutant in mutants(original, registry, families):
        yield from corrections(mutant, proofs, share=share, tell=tell)


def mutants(original: Original, registry: Registry, families: Sequence[Family] = FAMILIES) -> Iterator[Mutant]:
    """What the families make of a program, right or wrong; the same steps once, whatever their names."""
    known = shapes(original, registry)
    terms, seen = Terms(), set[tuple[int, ...]]()
    inputs = {g.name: terms.term(("input", g.name)) for g in original.given}
    for family in families:
        for mutant in family(original, known, registry):
            values = terms.run(mutant.rule.right, inputs, mutant.original.sizes)
            results = tuple(values[name] for name in mutant.rule.results)
            if results not in seen:
                seen.add(results)
                yield mutant


def corrections(
    mutant: Mutant, proofs: Proofs, *, share: float = LARGEST_SHARE, tell: Tell = lambda _, __: None
) -> Iterator[Corrected]:
    """The mutant mended and proved, in each way that there is; none where it is not worth it or cannot be done, which
    `tell` hears."""
    for attempt in attempted(mutant, proofs.registry, share=share, tell=tell):
        found = confirmed(attempt, proofs, tell=tell)
        if found is not None:
            yield found


@dataclass(frozen=True)
class Attempt:
    """A mutant that is right as far as numbers tell, mended where it was wrong; nothing of it is proved."""

    mutant: Mutant
    rule: Rule
    wrong: Wrong

    @property
    def uses(self) -> tuple[Use, ...]:
        """Rules that it follows from; what was mended is proved at once."""
        return () if any(self.wrong.boxes.values()) else self.mutant.uses


def attempted(
    mutant: Mutant, registry: Registry, *, share: float = LARGEST_SHARE, tell: Tell = lambda _, __: None
) -> tuple[Attempt, ...]:
    """The mutant mended, in each way that there is; none where it is not worth it or cannot be done, which `tell`
    hears."""
    try:
        found = wrong(mutant, registry)
        if found.share > share:
            raise GivenUp(f"wrong in {found.share:.0%} of its results")
        kept = [rule for rule in _mended(mutant, found, registry) if not loses_nan(rule, registry)]
        if not kept:
            raise GivenUp("a NaN would get lost")
    except Disagreement as bug:
        tell("bug", f"{mutant.family}: {bug}")
    except (Illegal, NotCovered, Unsupported, GivenUp) as why:
        tell("dropped", f"{mutant.family}: {why}")
    else:
        return tuple(Attempt(mutant, rule, found) for rule in kept)
    return ()


def _mended(mutant: Mutant, found: Wrong, registry: Registry) -> list[Rule]:
    """The rule with what is wrong mended, in each way that there is; each tells what it does, and how much of it is a
    correction."""
    boxes = sum(map(len, found.boxes.values()))
    mending = f"{found.share:.2%} of the results are mended, in {boxes} boxes." if boxes else "Nothing is mended."
    rules = mendings(mutant, found, registry) if boxes else [mutant.rule]
    return [replace(rule, doc=f"{mutant.rule.doc} {mending}") for rule in rules]


def confirmed(attempt: Attempt, proofs: Proofs, *, tell: Tell = lambda _, __: None) -> Corrected | None:
    """The attempt with its proof; None, and the reason told, where there is none."""
    mutant, found = attempt.mutant, attempt.wrong
    verdict = proofs.verdict(attempt.rule, attempt.uses)
    if verdict.status != "proved":
        tell("dropped", f"{mutant.family}: {verdict.status}, {verdict.reason}")
        return None
    rule = proofs.named(attempt.rule, mutant.family, derived=bool(attempt.uses))
    lemmas = {use.rule: proofs.named(use.rule, f"{mutant.family}-lemma") for use in attempt.uses}
    return Corrected(
        mutant.family, rule, found.boxes, found.share, found.sizes, verdict, tuple(lemmas.values())
    )  # fmt: skip


def proved_again(rule: Rule, proofs: Proofs) -> Verdict:
    """A rule that somebody says came from a mutant, proved from its text alone.

    What was too long to be proved at once is mutated again by the family that it names, to see what it follows from.
    """
    original = Original(rule.given, rule.left, dict.fromkeys(rule.sizes, SAMPLE))
    for mutant in mutants(original, proofs.registry, families_of(rule)):
        if mutant.uses and format_meaning(mutant.rule) == format_meaning(rule):
            return proofs.verdict(rule, mutant.uses)
    return proofs.verdict(rule, ())


def described_again(rule: Rule, programs: Iterable[Original], registry: Registry) -> Iterator[str]:
    """What is said of a rule where its family makes it of one of these programs; nothing where none of them gives it.

    What is wrong in a mutant is found by test alone: what the prover has to say of the rule is asked elsewhere.
    """
    meaning, operators = format_meaning(rule), _operators(rule.left)
    alike = (original for original in programs if _operators(original.steps) == operators)
    for mutant in (mutant for original in alike for mutant in mutants(original, registry, families_of(rule))):
        if (mutant.rule.given, mutant.rule.left) == (rule.given, rule.left):
            with suppress(Illegal, NotCovered, Unsupported, GivenUp):
                made = _mended(mutant, seen_wrong(mutant, registry), registry)
                yield from (other.doc for other in made if format_meaning(other) == meaning)


def families_of(rule: Rule) -> tuple[Family, ...]:
    """The one that its origin names; none where that is no family."""
    kind, _, name = rule.origin.partition(" ")
    return (BY_NAME[name],) if kind == PARTIAL and name in BY_NAME else ()


def _operators(steps: Iterable[Step]) -> list[str]:
    return [step.value.op if isinstance(step.value, Call) else "" for step in steps]
