"""The programs that are changed: a few steps in the language of rules, with the sizes they have here.

Sizes that a change does not depend on (the batch, the channels) stay symbols, so that what is proved holds for all of
them; those that it does depend on (heights, widths, kernels) are numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from superopt.ops.formula import Tensor
from superopt.ops.registry import Registry
from superopt.partial.derivation import Use
from superopt.rewrite.confirm import Bound
from superopt.rewrite.editing import in_shapes, in_steps, substituted
from superopt.rewrite.expression import Binary, Expression, Literal, Name
from superopt.rewrite.program import Keep, Program
from superopt.rewrite.rule import Block, Call, Given, Operand, Rule, Step
from superopt.rewrite.text import parse_rules

Shape = tuple[int, ...]


class GivenUp(Exception):
    """Why a mutant is not followed further, in words."""


@dataclass(frozen=True)
class Original:
    """Steps over given inputs; `sizes` says what each symbol is here."""

    given: tuple[Given, ...]
    steps: tuple[Step, ...]
    sizes: Mapping[str, int]

    @cached_property
    def results(self) -> tuple[str, ...]:
        """What no further step reads."""
        read = {name for step in self.steps for name in names_read(step.value)}
        return tuple(t for step in self.steps for t in step.targets if t not in read)

    @cached_property
    def names(self) -> frozenset[str]:
        """Names that stand for something already: inputs, values and sizes."""
        return frozenset(
            {g.name for g in self.given} | {t for s in self.steps for t in s.targets} | self.sizes.keys() | {"_"}
        )

    def dims(self, name: str) -> tuple[Expression, ...]:
        """The shape of an input as the program writes it."""
        (found,) = (g.dims for g in self.given if g.name == name)
        return tuple(d for d in found if not isinstance(d, Block))

    def pinned(self, names: Iterable[str]) -> Original:
        """The same program with those of its symbols that are named as the numbers they are here."""
        chosen = {s: self.sizes[s] for s in names if s in self.sizes}
        kept = {n: v for n, v in self.sizes.items() if n not in chosen}
        return self._with({n: Literal(str(v)) for n, v in chosen.items()}, kept)

    def divided(self, symbol: str, by: int) -> Original:
        """The same program with a symbol for a part of what it stands for: n as 2·n."""
        inner = Binary("*", Literal(str(by)), Name(symbol))
        return self._with({symbol: inner}, {**self.sizes, symbol: self.sizes[symbol] // by})

    def _with(self, meant: Mapping[str, Expression], sizes: Mapping[str, int]) -> Original:
        def put(part: Expression) -> Expression:
            return meant.get(part.name, part) if isinstance(part, Name) else part

        def change(expression: Expression) -> Expression:
            return substituted(expression, put)

        return Original(in_shapes(self.given, change), in_steps(self.steps, change), sizes)

    def rule(self, right: Sequence[str], doc: str) -> Rule:
        """A rule from the program to other steps, given as text."""
        return stated(self.given, self.steps, right, doc)


def stated(given: Iterable[object], left: Iterable[object], right: Iterable[object], doc: str = "") -> Rule:
    """A rule from its parts as text; nothing is said of whether it is true."""
    lines = ["rule mutant", *([f"  doc {doc}"] if doc else []), f"  given {'  '.join(map(str, given))}"]
    lines += [*(f"  {step}" for step in left), "  =>", *(f"  {step}" for step in right)]
    (found,) = parse_rules("\n".join(lines), "mutant")
    return found


def parse_original(given: str, steps: str, sizes: Mapping[str, int]) -> Original:
    """From text: inputs as after the word `given`, one step in each line."""
    lines = [line.strip() for line in steps.strip().split("\n")]
    last = [line.partition("=")[0].strip() for line in lines]
    results = [f"{name} = {name}_" for names in last for name in names.split(", ")]
    dummies = "  ".join(f"{line.partition(' = ')[2]}: []" for line in results)
    text = "\n".join(["rule original", f"  given {given}  {dummies}", *(f"  {s}" for s in lines), "  =>"])
    (rule,) = parse_rules(text + "".join(f"\n  {line}" for line in results), "program")
    return Original(rule.given[: len(rule.given) - len(results)], rule.left, dict(sizes))


@dataclass(frozen=True)
class Mutant:
    """A program and another with results of the same shapes, whose values may differ in part."""

    family: str
    original: Original
    rule: Rule
    uses: tuple[Use, ...] = ()
    """Rules that it follows from, if it is right everywhere and too long to be proved at once."""


def instance(
    rule: Rule, sizes: Mapping[str, int], registry: Registry, keep: Keep = lambda _, tensor: tensor
) -> Program:
    """The rule's program at these sizes, ready to run either side."""
    program = Program(rule, registry, Bound(sizes), keep, dict(sizes))
    program.start({})
    return program


def shape_of(tensor: Tensor) -> Shape:
    return tuple(int(n) for n in tensor.shape)  # pyright: ignore[reportArgumentType]


def started(original: Original, registry: Registry, keep: Keep = lambda _, tensor: tensor) -> Program:
    """The program at its own sizes, ready to run its steps."""
    return instance(Rule("original", "", original.given, (), original.steps, ()), original.sizes, registry, keep)


def shapes(original: Original, registry: Registry) -> dict[str, Shape]:
    """Shapes of inputs and values, in numbers."""
    values = started(original, registry).run(original.steps)
    return {name: shape_of(tensor) for name, tensor in values.items()}


def names_read(value: Operand) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [n for o in value.operands for n in names_read(o)] if isinstance(value, Call) else []


def needed(steps: Sequence[Step], results: Iterable[str]) -> list[Step]:
    """The steps that the results depend on, in their order."""
    wanted = set(results)
    kept: list[Step] = []
    for step in reversed(steps):
        if not wanted.isdisjoint(step.targets):
            kept.append(step)
            wanted.update(names_read(step.value))
    return kept[::-1]


def renamed(value: Call | str, names: Mapping[str, str]) -> Call | str:
    """A step's value with other names for what it reads."""
    if isinstance(value, str):
        return names.get(value, value)
    operands = tuple(renamed(o, names) if isinstance(o, Call | str) else o for o in value.operands)
    return replace(value, operands=operands)
