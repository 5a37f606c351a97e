"""A part of a graph as the left side of a rule: sizes are symbols, constants of one number are variables or numbers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from superopt.ir.graph import Node, Value
from superopt.ir.types import DType
from superopt.mine.cut import Cut
from superopt.mine.numbers import is_plain, plain, spelled
from superopt.mine.unify import CannotUnify, Shapes
from superopt.ops.condition import Undecided
from superopt.ops.formula import Illegal, NotCovered
from superopt.ops.index import Index, Poly, Quotient
from superopt.rewrite.reading import Reading
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.sizes import dtype_of

BROADCASTING = frozenset(["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Where"])
"""Operators for which a leading axis of size 1 of a weight says nothing."""

TAKING = frozenset(["Gather", "Squeeze"])
"""Operators that take an axis away."""


@dataclass(frozen=True)
class Lifted:
    """Text of the left side, and what a right side may be made of."""

    given: str
    where: str
    steps: tuple[str, ...]
    results: tuple[str, ...]
    data: tuple[str, ...]
    weights: tuple[str, ...]
    reals: tuple[str, ...]
    """Names of numbers that stand for any of their sign."""
    numbers: tuple[str, ...]
    """Numbers that are written out, other than the plain ones."""
    sizes: tuple[str, ...]
    """Sizes that an operator may have to be told: symbols, and those of last axes."""
    ranks: Mapping[str, int]
    values: Mapping[str, int]
    """What the symbols are in the model."""
    shapes: Mapping[str, tuple[str, ...]]
    """Of inputs and results."""

    @property
    def text(self) -> str:
        """What tells it apart from other parts."""
        return "\n".join((self.given, self.where, *self.steps))


def lifted(cut: Cut, rewriter: Rewriter) -> Iterator[Lifted]:
    """With variables for numbers, then with the numbers written out; nothing where sizes are not understood. A batch of
    one is any batch where the operators allow it; where one of them takes something out of an axis, perhaps the batch,
    it is also what it is."""
    ways = [_followed(cut, rewriter, batch=True)]
    if ways[0] is None or any(node.op in TAKING for node in cut.nodes):
        ways.append(_followed(cut, rewriter, batch=False))
    texts: set[str] = set()
    for followed, variables in itertools.product(filter(None, ways), (True, False)):
        made = _written(cut, rewriter, followed, variables)
        if made is not None and made.text not in texts:
            texts.add(made.text)
            yield made


def inputs_of(cut: Cut, rewriter: Rewriter) -> tuple[int, int]:
    """How many values and how many weights, numbers aside, a part will read; known before its sizes are followed."""
    made = {value for node in cut.nodes for value in node.outputs}
    readings = [reading for node in cut.nodes if isinstance(reading := rewriter.reader.read(node), Reading)]
    read = {v for reading in readings for v in reading.operands if v is not None and v not in made}
    weights = {v for v in read if rewriter.constants.is_weight(v)}
    return len(read - weights), sum(not is_number(v, rewriter) for v in weights)


def is_number(value: Value, rewriter: Rewriter) -> bool:
    """Whether it is a constant of one element."""
    shape = rewriter.sizes.shape(value)
    return shape is not None and all(n == 1 for n in shape) and rewriter.constants.fill(value) is not None


def narrowed(part: Lifted) -> Iterator[Lifted]:
    """The part where two sizes that are equal in the model are one: some operators want that."""
    for a, b in itertools.combinations(part.values, 2):
        if part.values[a] == part.values[b]:

            def one(text: str, a: str = a, b: str = b) -> str:
                return re.sub(rf"\b{b}\b", a, text)

            yield replace(
                part, given=one(part.given), steps=tuple(map(one, part.steps)), numbers=tuple(map(one, part.numbers)),
                sizes=tuple(dict.fromkeys(map(one, part.sizes))),
                values={name: value for name, value in part.values.items() if name != b},
                shapes={name: tuple(map(one, dims)) for name, dims in part.shapes.items()},
            )  # fmt: skip


def _written(cut: Cut, rewriter: Rewriter, followed: _Followed, variables: bool) -> Lifted | None:
    try:
        return _Writer(cut, rewriter, followed, variables).lifted()
    except CannotUnify:
        return None


def _followed(cut: Cut, rewriter: Rewriter, *, batch: bool) -> _Followed | None:
    try:
        return _Followed(cut, rewriter, batch)
    except (CannotUnify, Illegal, NotCovered, Undecided, ZeroDivisionError, TypeError):
        return None


class _Followed:
    """Sizes and arguments of every node of a part."""

    def __init__(self, cut: Cut, rewriter: Rewriter, batch: bool) -> None:
        self.rewriter = rewriter
        self.readings: dict[Node, Reading] = {}
        data = frozenset(cut.inputs if batch else ())
        self.shapes = Shapes(rewriter.sizes.shape, self.is_number, data.__contains__, self.repeats)
        for node in cut.nodes:
            reading = rewriter.reader.read(node)
            if not isinstance(reading, Reading) or node.captured:
                raise CannotUnify(f"{node.kind} has no formula")
            if any(v is not None and not _is_real(v) for v in (*reading.operands, *node.outputs)):
                raise CannotUnify("elements that are no floating point numbers")
            self.readings[node] = reading
            self.shapes.add(node, reading)

    def is_number(self, value: Value) -> bool:
        return is_number(value, self.rewriter)

    def repeats(self, value: Value) -> bool:
        """Whether it is a constant of two equal halves."""
        return self.rewriter.constants.repeated(value) is not None

    def shape(self, value: Value) -> tuple[Index, ...]:
        return tuple(map(self.shapes.unifier.resolved, self.shapes.of[value]))


def _is_real(value: Value) -> bool:
    dtype = dtype_of(value)
    return dtype is not None and (dtype.is_float or dtype is DType.BOOL)


class _Writer:
    def __init__(self, cut: Cut, rewriter: Rewriter, followed: _Followed, variables: bool) -> None:
        self.cut, self.rewriter, self.followed, self.variables = cut, rewriter, followed, variables
        self.names: dict[Value, str] = {}
        self.symbols: dict[str, str] = {}
        self.given: list[str] = []
        self.where: list[str] = []
        self.data: list[str] = []
        self.weights: list[str] = []
        self.reals: dict[float | int, str] = {}
        self.numbers: list[str] = []
        self.shapes: dict[str, tuple[str, ...]] = {}

    def lifted(self) -> Lifted | None:
        steps: list[str] = []
        for k, node in enumerate(self.cut.nodes):
            step = self._step(k, node)
            if step is None:
                return None
            steps.append(step)
        ranks = {name: len(dims) for name, dims in self.shapes.items()}
        sizes = dict.fromkeys(self.symbols.values())
        sizes |= dict.fromkeys(self.shapes[name][-1] for name in self.data if self.shapes[name])
        sizes.pop("1", None)
        results = {self.names[v]: tuple(map(self._size, self.followed.shape(v))) for v in self.cut.outputs}
        reals = [f"{name}: real" for name in self.reals.values()]
        return Lifted(
            "  ".join((*self.given, *reals)), ", ".join(self.where), tuple(steps),
            tuple(self.names[v] for v in self.cut.outputs), tuple(self.data), tuple(self.weights),
            tuple(self.reals.values()), tuple(dict.fromkeys(self.numbers)), tuple(sizes), ranks,
            {name: self.followed.shapes.unifier.numbers[s] for s, name in self.symbols.items()},
            {**self.shapes, **results},
        )  # fmt: skip

    def _step(self, k: int, node: Node) -> str | None:
        reading = self.followed.readings[node]
        parts: list[str] = []
        for value in reading.operands:
            parts.append("_" if value is None else self._operand(value, node))
        defaults = {p.name: p.default for p in reading.operator.parameters if not p.required}
        for name, value in self.followed.shapes.arguments[node].items():
            if name in defaults and not isinstance(value, np.ndarray) and value == defaults[name]:
                continue
            text = self._argument(value)
            if text is None:
                return None
            parts.append(f"{name}={text}")
        outputs = [f"t{k}" if len(node.types) == 1 else f"t{k}_{j}" for j in range(len(node.types))]
        self.names.update(zip(node.outputs, outputs, strict=True))
        kind = f"{node.domain}::{node.op}" if node.domain else node.op
        return f"{', '.join(outputs)} = {kind}({', '.join(parts)})"

    def _operand(self, value: Value, node: Node) -> str:
        if value in self.names:
            return self.names[value]
        if self.followed.is_number(value):
            return self._number(value)
        is_weight = self.rewriter.constants.is_weight(value)
        name = f"w{len(self.weights)}" if is_weight else f"x{len(self.data)}"
        (self.weights if is_weight else self.data).append(name)
        dims = [self._size(n) for n in self.followed.shape(value)]
        while is_weight and len(dims) > 1 and dims[0] == "1" and self._only_broadcasts(value):
            dims = dims[1:]
        self.names[value] = name
        if is_weight and self.followed.repeats(value):
            dims[-1] = self._size(_half(self.followed.shape(value)[-1]))
            self.names[value] = f"Concat({name}, {name}, axis={len(dims) - 1})"
        self.shapes[name] = tuple(dims)
        kind = "bool" if dtype_of(value) is DType.BOOL else ""
        self.given.append(f"{name}: {kind}[{', '.join(dims)}]")
        return self.names[value]

    def _only_broadcasts(self, value: Value) -> bool:
        return all(n.op in BROADCASTING and not n.domain for n in self.cut.nodes if value in n.operands)

    def _number(self, value: Value) -> str:
        number = self.rewriter.constants.fill(value)
        assert number is not None
        dtype = str(dtype_of(value))
        if not np.isfinite(float(number)):
            raise CannotUnify("a number that is none")
        if is_plain(number, dtype):
            return _in_brackets(next(spelled(number, dtype)))
        if self.variables:
            if number not in self.reals:
                self.reals[number] = f"r{len(self.reals)}"
                self.where.append(f"{self.reals[number]} {'>' if number > 0 else '<'} 0")
            return self.reals[number]
        sizes = [(self._size(n), self.followed.shapes.unifier.value(n)) for n in self._axes()]
        found = next(spelled(number, dtype, dict(sizes).items()))
        self.numbers.append(found)
        return _in_brackets(found)

    def _axes(self) -> list[Index]:
        """Axes of what the part computes."""
        return [n for node in self.cut.nodes for v in node.outputs for n in self.followed.shape(v)]

    def _argument(self, value: Any) -> str | None:
        if isinstance(value, str):
            return f'"{value}"'
        if isinstance(value, list | tuple):
            items = [self._argument(v) for v in value]
            return None if None in items else f"[{', '.join(map(str, items))}]"
        if isinstance(value, bool | np.ndarray):
            return None
        if isinstance(value, Fraction | float):
            return plain(value)
        return self._size(value)

    def _size(self, index: Index) -> str:
        index = self.followed.shapes.unifier.resolved(index)
        if isinstance(index, int):
            return str(index)
        terms: list[str] = []
        for monomial, factor in index.terms.items():
            names = [self._symbol(a) for a in monomial]
            text = "*".join([*([str(abs(factor))] if abs(factor) != 1 or not names else []), *names])
            terms.append(f"- {text}" if factor < 0 else f"+ {text}")
        terms.sort(key=lambda t: t.startswith("-"))
        text = " ".join(terms)
        return text[2:] if text.startswith("+ ") else f"0 {text}"

    def _symbol(self, atom: Any) -> str:
        if isinstance(atom, Quotient):
            return f"(({self._size(atom.number)})//({self._size(atom.divisor)}))"
        if atom.name not in self.symbols:
            k = len(self.symbols)
            self.symbols[atom.name] = "nmkpqhsuvabcdefg"[k] if k < 16 else f"n{k}"
        return self.symbols[atom.name]


def _half(index: Index) -> Index:
    """Of a size that was made of two halves."""
    if isinstance(index, int):
        return index // 2
    return Poly({monomial: factor // 2 for monomial, factor in index.terms.items()})


def _in_brackets(text: str) -> str:
    """A number that starts with a name, or with a sign, would be read as something else."""
    return text if text[0].isdigit() and " " not in text else f"({text})"
