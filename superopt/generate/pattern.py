"""Terms made ready to be looked for in an e-graph, and to be built there: their leaves stand for classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from superopt.generate.term import Node, Term, leaves, subterms

OUTPUTS = 64
"""More than any operator has: an operator's code is its template's number times this, plus the output."""


def code_of(node: Node) -> int:
    return node.template * OUTPUTS + node.output


class Step(NamedTuple):
    register: int
    code: int
    operands: tuple[tuple[int, bool], ...]
    """Registers, and whether the operand is written there for the first time; else it must be what stands there."""
    starts: bool = False
    """Any class with this operator, instead of the class that stands in the register."""


@dataclass(frozen=True)
class Pattern:
    """Terms to be found together, with one meaning for each leaf: a join where there are several."""

    program: tuple[Step, ...]
    roots: tuple[int, ...]
    """The registers of the terms."""
    values: tuple[int, ...]
    """The registers of the leaves, in the order of `names`."""
    names: tuple[str, ...]
    registers: int
    code: int
    """The operator of the term that is looked for first."""
    paths: tuple[tuple[int | None, ...], ...]
    """The operators on the way from each operator inside the first term up to its root; None before those above a leaf
    or term that stands in it twice. Where something changed at the start of a path, the pattern may fit anew."""


def compile_pattern(terms: Sequence[Term]) -> Pattern | None:
    """None if a term is a leaf that no other term holds: that fits everything."""
    registers: dict[Term, int] = {}
    program: list[Step] = []
    nodes = [t for t in terms if isinstance(t, Node)]
    for term in nodes:
        if term not in registers:
            registers[term] = len(registers)
            program.append(Step(registers[term], code_of(term), (), starts=True))
            _descend(term, registers, program)
    if not nodes or any(t not in registers for t in terms):
        return None
    names = leaves(*nodes)
    return Pattern(
        tuple(program), tuple(registers[t] for t in terms), tuple(registers[n] for n in names), tuple(names),
        len(registers), code_of(nodes[0]), _paths(nodes[0]),
    )  # fmt: skip


def _descend(term: Node, registers: dict[Term, int], program: list[Step]) -> None:
    waiting = [term]
    for node in waiting:
        operands: list[tuple[int, bool]] = []
        for operand in node.operands:
            new = operand not in registers
            operands.append((registers.setdefault(operand, len(registers)), new))
            if new and isinstance(operand, Node):
                waiting.append(operand)
        program.append(Step(registers[node], code_of(node), tuple(operands)))


def _paths(root: Node) -> tuple[tuple[int | None, ...], ...]:
    found: dict[tuple[int | None, ...], None] = {}
    above: dict[Term, list[tuple[int | None, ...]]] = {}
    waiting: list[tuple[Node, tuple[int | None, ...]]] = [(root, (code_of(root),))]
    for node, path in waiting:
        for operand in node.operands:
            above.setdefault(operand, []).append(path)
            if isinstance(operand, Node):
                waiting.append((operand, (code_of(operand), *path)))
                found[code_of(operand), *path] = None
    for paths in above.values():
        if len(paths) > 1:
            found.update(dict.fromkeys((None, *path) for path in paths))
    return tuple(found)


@dataclass(frozen=True)
class Building:
    """How terms are built over classes: the classes of leaves come first, then what each step makes."""

    steps: tuple[tuple[int, tuple[int, ...]], ...]
    results: tuple[int, ...]


def compile_building(terms: Sequence[Term], names: Sequence[str]) -> Building:
    """`names`: the leaves, in the order in which their classes will be given."""
    slots: dict[Term, int] = {name: k for k, name in enumerate(names)}
    steps: list[tuple[int, tuple[int, ...]]] = []
    for term in subterms(*terms):
        if isinstance(term, Node):
            slots[term] = len(names) + len(steps)
            steps.append((code_of(term), tuple(slots[o] for o in term.operands)))
    return Building(tuple(steps), tuple(slots[t] for t in terms))
