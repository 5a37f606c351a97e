"""Spellings of a target, such as LayerNormalization(x, g, c), that are too large to be met from below alone.

A target is peeled from the top: if it is Add(s, c), then s is the target minus c; if that is Mul(t, g), then t is that
divided by g; and so on, for every value of the table that could be the other operand. After each step the rest is
looked up among the table's values, stretched to the target's shape. So spellings are met in the middle, with as many
operators above as were peeled and as many below as the table has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from superopt.generate.residues import Array, Residues, Value
from superopt.generate.stage import Shape, Signature
from superopt.generate.table import Table
from superopt.generate.term import Node, Pair, Term
from superopt.rewrite.expression import evaluate
from superopt.rewrite.rule import Number

STEPS = 3
"""Operators that are peeled, at most."""
LIGHT = 1
"""Operators in an operand that is peeled off before the last step."""
MOST = 1 << 16
"""Rests that are peeled further."""
LARGEST = 3
"""Operators in an operand that is peeled off in the last step."""

Batch: TypeAlias = list[Value]
"""Numbers in each world, of the target's shape, several on the last axis."""


class Layer(NamedTuple):
    """What was peeled: an operator, and the operand that is known; None where the template holds it."""

    template: int
    known: int | None
    known_first: bool


@dataclass(frozen=True)
class Rest:
    """What is left of a target under some layers, the outermost first."""

    layers: tuple[Layer, ...]
    column: int


Inverse: TypeAlias = Callable[[Residues, Value, Value], Value]
"""From the result and the known operand to the other one."""


def _minus(d: Residues, a: Value, b: Value) -> Value:
    return d.add(a, d.multiply(d.number(-1), b))


def _over(d: Residues, a: Value, b: Value) -> Value:
    return d.multiply(a, d.call("reciprocal", [b]))


_FIRST_KNOWN: dict[str, Inverse] = {
    "Add": _minus,
    "Sub": lambda d, v, a: _minus(d, a, v),
    "Mul": _over,
    "Div": lambda d, v, a: _over(d, a, v),
}
_SECOND_KNOWN: dict[str, Inverse] = {
    "Add": _minus,
    "Sub": lambda d, v, b: d.add(v, b),
    "Mul": _over,
    "Div": lambda d, v, b: d.multiply(v, b),
}


def spellings(table: Table) -> Iterator[Pair]:
    """Every pair of a target of the table and a larger graph that equals it."""
    scene = table.stage.scene
    shapes: dict[Signature, list[int]] = {}
    for number, term in enumerate(table.terms):
        if isinstance(term, Node) and term.template in scene.goals:
            shapes.setdefault(table.signatures[table.signature_of[number]], []).append(number)
    for signature, targets in shapes.items():
        peeler = _Peeler(table, signature)
        for target in targets:
            yield from peeler.spellings(target)


class _Peeler:
    """For targets of one shape."""

    def __init__(self, table: Table, signature: Signature) -> None:
        self.table, self.signature = table, signature
        self.stage, self.domain = table.stage, table.stage.domain
        self.worlds = range(len(signature))
        self.stretched: dict[int, Batch] = {}
        self.known: dict[int, int] = {}
        self.operands: list[int] = []
        self._stretch()

    def _stretch(self) -> None:
        """All values that broadcast to the target's shape, and their fingerprints at it."""
        goals = self.stage.scene.goals
        for s, signature in enumerate(self.table.signatures):
            if not all(_fits(small, large) for small, large in zip(signature, self.signature, strict=True)):
                continue
            numbers = [n for (_, of), members in self.table.members.items() if of == s for n in members]
            for start in range(0, len(numbers), 4096):
                part = numbers[start : start + 4096]
                batch = [
                    self._at_shape(self.table.operand_values(np.asarray(part), w), w, len(part)) for w in self.worlds
                ]
                for number, key in zip(part, self._keys(batch), strict=True):
                    if self.known.setdefault(key, number) == number:
                        self.operands.append(number)
        self.operands = [n for n in self.operands if not _is_goal(self.table.terms[n], goals)]
        self.operands.sort()

    def _at_shape(self, value: Value, world: int, count: int) -> Value:
        shape = self.signature[world]
        rank = len(shape)

        def stretch(part: Array) -> Array:
            lead = (1,) * (rank + 1 - part.ndim)
            return np.ascontiguousarray(np.broadcast_to(part.reshape(lead + part.shape), (*shape, count)))

        return value.map(stretch)

    def _keys(self, batch: Batch) -> list[int]:
        key = np.zeros(batch[0].p.shape[-1], np.uint64)
        for world, value in enumerate(batch):
            with np.errstate(over="ignore"):
                key = key * np.uint64(0x9E3779B97F4A7C15) + self.stage.fingerprint(value, world)
        return key.tolist()

    def spellings(self, target: int) -> Iterator[Pair]:
        goal = self.table.terms[target]
        start = [self.table.operand_values(np.asarray([target]), w) for w in self.worlds]
        rests, batch = [Rest((), 0)], start
        for step in range(1, STEPS + 1):
            last = step == STEPS
            new_rests: list[Rest] = []
            new_batches: list[Batch] = []
            width = 0
            for found, values in self._peeled(rests, batch, LARGEST if last or step == 1 else LIGHT):
                for rest, key in zip(found, self._keys(values), strict=True):
                    if key in self.known:
                        yield Pair((goal,), (self._built(rest, self.known[key]),))
                light = [k for k, rest in enumerate(found) if self._is_light(rest)]
                if not last and light and width < MOST:
                    new_rests += [Rest(found[k].layers, width + j) for j, k in enumerate(light)]
                    new_batches.append([v.map(lambda part: part[..., light]) for v in values])  # noqa: B023
                    width += len(light)
            if not new_rests:
                return
            rests, batch = new_rests, [_joined([b[w] for b in new_batches]) for w in self.worlds]

    def _is_light(self, rest: Rest) -> bool:
        known = rest.layers[-1].known
        return known is None or self.table.sizes[known] <= LIGHT

    def _peeled(self, rests: list[Rest], batch: Batch, largest: int) -> Iterator[tuple[list[Rest], Batch]]:
        """One layer off each of the rests, in every way there is."""
        operands = [n for n in self.operands if self.table.sizes[n] <= largest]
        for t, template in enumerate(self.stage.scene.templates):
            op = template.call.op
            if op not in _FIRST_KNOWN or t in self.stage.scene.goals or template.outputs > 1:
                continue
            if template.slots == 1 and template.numbers:
                known_first = isinstance(template.call.operands[0], Number)
                inverse = (_FIRST_KNOWN if known_first else _SECOND_KNOWN)[op]
                layer = Layer(t, None, known_first)
                values = [self._by_number(inverse, batch[w], template.numbers[0], w) for w in self.worlds]
                yield [Rest((*r.layers, layer), k) for k, r in enumerate(rests)], values
            elif template.slots == 2:
                for first in (True, False) if not template.commutative else (True,):
                    inverse = (_FIRST_KNOWN if first else _SECOND_KNOWN)[op]
                    yield from self._by_operands(rests, batch, operands, t, first, inverse)

    def _by_number(self, inverse: Inverse, rests: Value, number: Number, world: int) -> Value:
        names = {n: v for n, v in self.stage.scene.worlds[world].items() if isinstance(v, int)}
        value = evaluate(number.expression, names)
        return inverse(self.domain, rests, self.stage.number(value))

    def _by_operands(
        self, rests: list[Rest], batch: Batch, operands: Sequence[int], template: int, first: bool, inverse: Inverse
    ) -> Iterator[tuple[list[Rest], Batch]]:
        for operand in operands:
            known = [self._at_shape(self.table.operand_values(np.asarray([operand]), w), w, 1) for w in self.worlds]
            values = [inverse(self.domain, batch[w], known[w]) for w in self.worlds]
            layer = Layer(template, operand, first)
            yield [Rest((*r.layers, layer), k) for k, r in enumerate(rests)], values

    def _built(self, rest: Rest, inner: int) -> Term:
        """The spelling: the layers around a value."""
        term = self.table.terms[inner]
        for layer in reversed(rest.layers):
            if layer.known is None:
                term = Node(layer.template, (term,))
            else:
                known = self.table.terms[layer.known]
                term = Node(layer.template, (known, term) if layer.known_first else (term, known))
        return term


def _fits(small: Shape, large: Shape) -> bool:
    """Whether the first broadcasts to the second."""
    if len(small) > len(large):
        return False
    return all(a in (b, 1) for a, b in zip(reversed(small), reversed(large), strict=False))


def _is_goal(term: Term, goals: frozenset[int]) -> bool:
    return isinstance(term, Node) and term.template in goals


def _joined(values: list[Value]) -> Value:
    parts = [None if part[0] is None else np.concatenate(part, axis=-1) for part in zip(*values, strict=True)]  # pyright: ignore
    assert parts[0] is not None
    return Value(*parts)
