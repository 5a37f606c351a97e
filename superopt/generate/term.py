"""The graphs that are enumerated, as terms: an input by its name, or an operator applied to terms.

Terms share what is equal in them, so that a term stands for a graph: its size is the number of different operators in
it, and the two results of one Split are two terms around one operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, TypeAlias

from superopt.rewrite.expression import Expression, names_in
from superopt.rewrite.rule import Call, Number


@dataclass(frozen=True)
class Template:
    """An operator with its attributes, and what stands at its operands: None where a term goes, else what is fixed."""

    call: Call
    """With the slots named `s0`, `s1`, … as operands."""
    outputs: int = 1
    commutative: bool = False
    weights: frozenset[int] = frozenset()
    """Slots for terms that read weights alone: a convolution's filters."""
    running: frozenset[int] = frozenset()
    """Slots for terms that read something else too."""

    @property
    def slots(self) -> int:
        return _slots(self.call)

    @property
    def is_composite(self) -> bool:
        """Whether it is a small graph that counts as one operator: what is computed of weights may take many steps."""
        return any(isinstance(o, Call) for o in self.call.operands)

    @property
    def at_run_time(self) -> list[str]:
        """The names of its operators, without those that read weights alone wherever it stands."""
        return [call.op for call, slots in _parts(self.call, count()) if not slots <= self.weights]

    @property
    def text(self) -> str:
        """Unique among templates: equal texts mean equal operators."""
        return f"{self.call}" + (f" -> {self.outputs}" if self.outputs > 1 else "")

    def filled(self, operands: tuple[str, ...]) -> Call:
        """The call with these values at its slots."""
        return _filled(self.call, iter(operands))

    @property
    def mentions(self) -> set[str]:
        """Names of sizes and blocks in its attributes and numbers."""
        return {name.strip("|") for e in _expressions(self.call) for name in names_in(e)}

    @property
    def numbers(self) -> tuple[Number, ...]:
        return tuple(o for o in self.call.operands if isinstance(o, Number))


def _parts(call: Call, numbers: Iterator[int]) -> list[tuple[Call, set[int]]]:
    """The call and those nested in it, each with the numbers of the slots under it."""
    found: list[tuple[Call, set[int]]] = []
    under: set[int] = set()
    for operand in call.operands:
        if isinstance(operand, str):
            under.add(next(numbers))
        elif isinstance(operand, Call):
            inner = _parts(operand, numbers)
            under |= inner[0][1]
            found += inner
    return [(call, under), *found]


def _slots(call: Call) -> int:
    return sum(1 if isinstance(o, str) else _slots(o) if isinstance(o, Call) else 0 for o in call.operands)


def _filled(call: Call, given: Iterator[str]) -> Call:
    operands = tuple(
        next(given) if isinstance(o, str) else _filled(o, given) if isinstance(o, Call) else o for o in call.operands
    )
    return Call(call.domain, call.op, operands, call.arguments, call.bundle)


def _expressions(call: Call) -> Iterator[Expression]:
    yield from (value for _, value in call.arguments)
    for operand in call.operands:
        if isinstance(operand, Number):
            yield operand.expression
        elif isinstance(operand, Call):
            yield from _expressions(operand)


class Node(NamedTuple):
    template: int
    """Which of the scene's templates."""
    operands: tuple[Term, ...]
    output: int = 0

    @property
    def operator(self) -> tuple[int, tuple[Term, ...]]:
        """What is one operator in the graph, whichever of its results is meant."""
        return (self.template, self.operands)


Term: TypeAlias = "str | Node"


@dataclass(frozen=True)
class Pair:
    """Two graphs that compute the same: one term each, or one for each result."""

    left: tuple[Term, ...]
    right: tuple[Term, ...]


def operators(*terms: Term) -> set[tuple[int, tuple[Term, ...]]]:
    """The different operators of a graph."""
    found: set[tuple[int, tuple[Term, ...]]] = set()
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        if isinstance(term, Node) and term.operator not in found:
            found.add(term.operator)
            waiting += term.operands
    return found


def size(*terms: Term) -> int:
    return len(operators(*terms))


def leaves(*terms: Term) -> list[str]:
    """The inputs that it reads, in the order in which it reads them."""
    found: dict[str, None] = {}

    def visit(term: Term) -> None:
        if isinstance(term, str):
            found.setdefault(term)
        else:
            for operand in term.operands:
                visit(operand)

    for term in terms:
        visit(term)
    return list(found)


def subterms(*terms: Term) -> Iterator[Term]:
    """Every term inside, operands before what reads them, each once."""
    seen: set[Term] = set()

    def visit(term: Term) -> Iterator[Term]:
        if term in seen:
            return
        seen.add(term)
        if isinstance(term, Node):
            for operand in term.operands:
                yield from visit(operand)
        yield term

    for term in terms:
        yield from visit(term)


def replace(term: Term, by: dict[Term, Term]) -> Term:
    """With some terms replaced wherever they stand, the outermost first."""
    if term in by:
        return by[term]
    if isinstance(term, str):
        return term
    return Node(term.template, tuple(replace(o, by) for o in term.operands), term.output)


def show(term: Term, templates: Iterable[Template]) -> str:
    """On one line, for people."""
    known = tuple(templates)

    def visit(term: Term) -> str:
        if isinstance(term, str):
            return term
        template = known[term.template]
        call = str(template.filled(tuple(visit(o) for o in term.operands)))
        return f"{call}.{term.output}" if template.outputs > 1 else call

    return visit(term)
