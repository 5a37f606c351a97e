"""From a rule of certain sizes and attributes to the most general one that may be true.

Each step leaves one thing open: attributes, numbers, sizes, the number of axes. A step is kept where random instances
of the wider rule show no difference. So the first form is as wide as numbers tell; the further ones leave out what
makes proofs hard, and the last is the rule as it came. The proof decides which of them is shipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from superopt.generate.attributes import bundled, lengths, spelled
from superopt.generate.axes import Plan, broad_plans, broadcasts, plans, separate, windows, with_blocks
from superopt.generate.sizes import real_numbers, shared_numbers, split_sizes, symbolic_dims
from superopt.generate.trial import DRAWS, SEED, survives
from superopt.ops.registry import Registry
from superopt.rewrite.editing import mentions, reads
from superopt.rewrite.expression import Literal, Name, names_in
from superopt.rewrite.program import find
from superopt.rewrite.rule import Block, Call, Rule, Where
from superopt.rewrite.text import format_meaning
from superopt.verify.instances import instances
from superopt.verify.lost import find_lost_nan

MOST_FORMS = 8
MOST_SPLITS = 3
"""Sizes that are made different, at most: each doubles the cases of a proof."""

LADDER: tuple[tuple[str, ...], ...] = (
    ("bundles", "attributes", "numbers", "sizes", "broad", "splits", "groups"),
    ("bundles", "attributes", "numbers", "sizes", "blocks", "split", "groups"),
    ("bundles", "attributes", "numbers", "sizes", "blocks", "groups"),
    ("single", "attributes", "numbers", "sizes", "blocks"),
    ("attributes", "numbers", "sizes", "blocks"),
    ("bundles", "attributes", "numbers", "sizes", "groups"),
    ("attributes", "numbers", "sizes"),
    (),
)
"""The steps that are tried for each form."""


def forms(rule: Rule, registry: Registry) -> list[Rule]:
    """What to try to prove, most general first; the rule itself comes last. Equal texts come once."""
    return list(each_form(rule, registry))


def each_form(rule: Rule, registry: Registry) -> Iterator[Rule]:
    """As `forms`, each made when it is asked for."""
    widener = _Widener(registry)
    seen: set[str] = set()
    for steps in LADDER:
        form = widener.widened(replace(rule, proof=None), steps)
        text = format_meaning(form)
        if text not in seen and len(seen) < MOST_FORMS:
            seen.add(text)
            yield _marked(form, registry)


def _marked(rule: Rule, registry: Registry) -> Rule:
    """Where a NaN that the left side passes on gets lost on the right: with inputs that are known to be finite, if they
    are numbers, which mostly stand in the model; else with `where finite`."""
    marked = rule
    while not marked.finite and (name := find_lost_nan(marked, registry)) is not None:
        (lost,) = (given for given in rule.given if given.name == name)
        if lost.dims:
            return replace(rule, finite=True)
        marked = replace(marked, given=tuple(replace(g, kind="finite") if g.name == name else g for g in marked.given))
    return marked


class _Widener:
    """Takes steps, and remembers which rules survived their trial."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._tried: dict[str, bool] = {}

    def widened(self, rule: Rule, steps: tuple[str, ...]) -> Rule:
        for step in steps:
            rule = getattr(self, f"_{step}")(rule)
        return rule

    def _holds(self, rule: Rule) -> bool:
        text = format_meaning(rule)
        if text not in self._tried:
            self._tried[text] = survives(rule, self.registry)
        return self._tried[text]

    def _first(self, ideas: Iterable[Rule], otherwise: Rule) -> Rule:
        return next((idea for idea in ideas if self._holds(idea)), otherwise)

    def _repeated(self, ideas: Callable[[Rule], Iterable[Rule]], rule: Rule, most: int = 8) -> Rule:
        """The first idea that holds, and so on from there."""
        for _ in range(most):
            further = self._first(ideas(rule), rule)
            if further is rule:
                break
            rule = further
        return rule

    def _bundles(self, rule: Rule) -> Rule:
        return self._first(bundled(rule, self.registry), rule)

    def _single(self, rule: Rule) -> Rule:
        return self._first(bundled(rule, self.registry, (True,)), rule)

    def _attributes(self, rule: Rule) -> Rule:
        done: set[str] = set()

        def further(rule: Rule) -> Iterator[Rule]:
            for name, ideas in spelled(rule, self.registry):
                for idea in ideas if name not in done else ():
                    done.add(name)
                    yield idea

        return self._repeated(lengths, self._repeated(further, rule))

    def _numbers(self, rule: Rule) -> Rule:
        return self._repeated(real_numbers, self._repeated(shared_numbers, rule, most=2), most=2)

    def _sizes(self, rule: Rule) -> Rule:
        return self._repeated(symbolic_dims, rule)

    def _blocks(self, rule: Rule) -> Rule:
        return self._first(self._with_blocks(rule), rule)

    def _with_blocks(self, rule: Rule) -> Iterator[Rule]:
        yield from windows(rule)
        yield from separate(rule, self.registry)
        yield from self._planned(rule, plans(rule, self.registry))

    def _broad(self, rule: Rule) -> Rule:
        """Two blocks that broadcast where that holds, else as `blocks`."""
        ideas = (idea for idea in self._planned(rule, broad_plans(rule)) if broadcasts(idea, self.registry))
        made = self._first(ideas, rule)
        return made if made is not rule else self._blocks(rule)

    def _planned(self, rule: Rule, plans: Iterable[Plan]) -> Iterator[Rule]:
        for plan in plans:
            made = with_blocks(rule, plan, self.registry)
            if made is not None:
                yield made

    def _split(self, rule: Rule) -> Rule:
        return self._first(split_sizes(rule, self.registry), rule)

    def _splits(self, rule: Rule) -> Rule:
        return self._repeated(lambda r: split_sizes(r, self.registry), rule, most=MOST_SPLITS)

    def _groups(self, rule: Rule) -> Rule:
        """Where no legal instance has more than one group, the rule says so: that spares the proof the search."""
        for call in rule.calls:
            said = f"{call.bundle}.group"
            if call.bundle is None or find(call, self.registry).parameter("group") is None:
                continue
            if any(said in names_in(w.left) for w in rule.where):
                continue
            drawn = (i.numbers.drawn for i in instances(rule, self.registry, wanted=4 * DRAWS, seed=SEED))
            if all(numbers.get(said, 1) == 1 for numbers in drawn):
                rule = replace(rule, where=(*rule.where, Where(Name(said), "==", Literal("1"))))
        return rule


def can_be_used(rule: Rule) -> bool:
    """Whether the pattern is one, and determines all that the right side needs."""
    if not any(isinstance(s.value, Call) and s.value.op != "Identity" for s in rule.left):
        return False
    read = reads(rule.left)
    told = {g.name for g in rule.given if g.is_tensor and g.name in read}
    if any(g.name in reads(rule.right) for g in rule.given if g.is_tensor and g.name not in told):
        return False
    sizes = {n for g in rule.given if g.name in told for d in g.dims if not isinstance(d, Block) for n in names_in(d)}
    sizes |= {f"|{d.name}|" for g in rule.given if g.name in told for d in g.dims if isinstance(d, Block)}
    known = sizes | read | mentions(rule.left) | {n for w in rule.where for n in names_in(w.left) if w.right == Name(n)}
    needed = mentions(rule.right) | {g.name for g in rule.given if g.kind == "real" and g.name in reads(rule.right)}
    bundles = {c.bundle for s in rule.left for c in _calls(s.value) if c.bundle}
    free = {n for n in needed - known if n.partition(".")[0] not in bundles}
    results = set(rule.results)
    last = [t for s in rule.left for t in s.targets if t not in read and t != "_"]
    return not free and all(t in results for t in last)


def _calls(value: Call | str) -> list[Call]:
    return (
        []
        if isinstance(value, str)
        else [value, *(c for o in value.operands if isinstance(o, Call) for c in _calls(o))]
    )
