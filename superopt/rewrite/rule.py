"""The parts of a rule.

given   x: [n, c, h, w]  k: [o, c, r, s]     inputs with their shapes; `...b` is a block of any number of axes
where   r == 2*p + 1                          conditions on sizes and attributes
y = Conv(x, k, pads=[p, p, p, p], *a)         the pattern
=>
…                                             what takes its place; it defines the pattern's results again
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from superopt.rewrite.expression import Binary, Expression, Name, Text, names_in


@dataclass(frozen=True)
class Block:
    """Any number of axes, `...b` in text."""

    name: str

    def __str__(self) -> str:
        return f"...{self.name}"


@dataclass(frozen=True)
class Given:
    """An input tensor (`x: [n, m]`, `c: bool[n]`, `s: positive[n]`, `z: finite[n]`), a whole number (`p: int`) or a
    number (`e: real`).

    Elements of a positive tensor are above 0, those of a finite one are neither NaN nor infinite, which the matcher
    has to see: it is a constant of the model, or a weight made of such."""

    name: str
    kind: Literal["tensor", "bool", "positive", "finite", "int", "real"]
    dims: tuple[Expression | Block, ...] = ()

    def __str__(self) -> str:
        if self.kind in ("int", "real"):
            return f"{self.name}: {self.kind}"
        prefix = "" if self.kind == "tensor" else self.kind
        return f"{self.name}: {prefix}[{', '.join(map(str, self.dims))}]"

    @property
    def is_tensor(self) -> bool:
        return self.kind in ("tensor", "bool", "positive", "finite")


@dataclass(frozen=True)
class Where:
    left: Expression
    comparison: Literal["==", "!=", "<", "<=", ">", ">="]
    right: Expression

    def __str__(self) -> str:
        return f"{self.left} {self.comparison} {self.right}"


@dataclass(frozen=True)
class Number:
    """A number as an operand: a tensor without axes. One that starts with a name stands in brackets, or the name would
    be read as a value's."""

    expression: Expression

    def __str__(self) -> str:
        first = self.expression
        while isinstance(first, Binary):
            first = first.left
        return f"({self.expression})" if isinstance(first, Name) else str(self.expression)


Operand: TypeAlias = "str | Number | Call | None"
"""The name of a value, a number, a nested call, or nothing (`_`)."""


@dataclass(frozen=True)
class Call:
    domain: str
    op: str
    operands: tuple[Operand, ...]
    arguments: tuple[tuple[str, Expression], ...] = ()
    bundle: str | None = None
    """`*a`: all attributes not named, the same wherever the bundle stands."""

    def casts(self, to: str) -> bool:
        """Whether it is a cast to what a rule calls `wider` or `narrower`."""
        return self.op == "Cast" and dict(self.arguments).get("to") == Text(to)

    def __str__(self) -> str:
        parts = ["_" if o is None else str(o) for o in self.operands]
        parts += [f"{name}={value}" for name, value in self.arguments]
        if self.bundle is not None:
            parts.append(f"*{self.bundle}")
        name = f"{self.domain}::{self.op}" if self.domain else self.op
        return f"{name}({', '.join(parts)})"


@dataclass(frozen=True)
class Step:
    targets: tuple[str, ...]
    value: Call | str
    """A call, or another value under a new name."""

    def __str__(self) -> str:
        return f"{', '.join(self.targets)} = {self.value}"


@dataclass(frozen=True)
class Proof:
    """What was proved, by what, of which text."""

    verdict: str
    """`unbounded`, or `bounded n`."""
    solver: str
    digest: str

    def __str__(self) -> str:
        return f"{self.verdict} {self.solver} digest={self.digest}"


PARTIAL = "partial"
"""First word of the origin of a rule that began as a mutant, wrong in a part of its results."""


@dataclass(frozen=True)
class Rule:
    name: str
    doc: str
    given: tuple[Given, ...]
    where: tuple[Where, ...]
    left: tuple[Step, ...]
    right: tuple[Step, ...]
    finite: bool = False
    """`where finite`: true for numbers, but NaN or infinity may get lost; off unless asked for."""
    origin: str = "hand"
    proof: Proof | None = None
    source: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)

    @property
    def results(self) -> tuple[str, ...]:
        """What the pattern computes and the right side computes again, in the pattern's order."""
        again = {t for step in self.right for t in step.targets}
        return tuple(t for step in self.left for t in step.targets if t in again)

    @property
    def is_partial(self) -> bool:
        """Whether it is a mutant with its corrections."""
        return self.origin.split(" ")[0] == PARTIAL

    @property
    def calls(self) -> tuple[Call, ...]:
        """Every call, nested ones included."""
        return tuple(calls_of((*self.left, *self.right)))

    @cached_property
    def operators(self) -> tuple[tuple[str, str], ...]:
        """The name and domain of every operator that is called, once each."""
        return tuple(dict.fromkeys((call.op, call.domain) for call in self.calls))

    @cached_property
    def meaning(self) -> str:
        """The text that a proof is about: everything but name, doc, origin and the proof itself."""
        parts = [" ".join(map(str, self.given)), self.conditions]
        parts += [*map(str, self.left), "=>", *map(str, self.right)]
        return "\n".join(parts)

    @property
    def conditions(self) -> str:
        return ", ".join([*map(str, self.where), *(["finite"] if self.finite else [])])

    @property
    def blocks(self) -> tuple[str, ...]:
        names = [d.name for g in self.given for d in g.dims if isinstance(d, Block)]
        return tuple(dict.fromkeys(names))

    @property
    def sizes(self) -> tuple[str, ...]:
        """Names of sizes, in the order in which shapes mention them."""
        names = [n for g in self.given for d in g.dims if not isinstance(d, Block) for n in sorted(names_in(d))]
        return tuple(dict.fromkeys(n for n in names if not n.startswith("|")))


def calls_of(steps: Iterable[Step]) -> list[Call]:
    """Every call, nested ones included, in the order of execution."""
    found: list[Call] = []

    def visit(call: Call) -> None:
        for operand in call.operands:
            if isinstance(operand, Call):
                visit(operand)
        found.append(call)

    for step in steps:
        if isinstance(step.value, Call):
            visit(step.value)
    return found
