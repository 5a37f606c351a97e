"""Spellings of a target, such as LayerNormalization(x, g, c), that are too large to be met from below alone.

A target is peeled from the top: if it is Add(s, c), then s is the target minus c; if that is Mul(t, g), then t is that
divided by g; and so on, for every value of the table that could be the other operand. After each step the rest is
looked up among the table's values, stretched to the target's shape. So spellings are met in the middle, with as many
operators above as were peeled and as many below as the table has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import NamedTuple, TypeAlias

import numpy as np

from superopt.generate.residues import Array, Residues, Value, together
from superopt.generate.stage import Shape, Signature
from superopt.generate.table import Table
from superopt.generate.term import Node, Pair, Term, size
from superopt.rewrite.expression import evaluate
from superopt.rewrite.rule import Number

STEPS = 3
"""Operators that are peeled, at most."""
LIGHT = 1
"""Operators in an operand that is peeled off before the last step."""
LARGEST = 3
"""Operators in an operand that is peeled off in the first step, or the last."""
MOST_SPELLINGS = 60
"""Of one target: the smallest."""
MOST_TARGETS = 48
"""Of one shape: those whose operands are smallest. A law about larger ones is a law about these, put elsewhere."""
MOST = 1 << 18
"""Rests that are looked up in one step, about: with many of them, only the smallest operands are tried."""
BLOCK = 1 << 15
"""Rests that are worked out at once."""

Batch: TypeAlias = list[Value]
"""Numbers in each world, of the target's shape, several on the last axis."""


class Layer(NamedTuple):
    """What was peeled: an operator, and the operand that is known; None where the template holds it."""

    template: int
    known: int | None
    known_first: bool


Rest: TypeAlias = tuple[Layer, ...]
"""What was peeled off so far, the outermost first."""


class Operand(NamedTuple):
    """Numbers and their reciprocals, which several inverses need."""

    value: Value
    reciprocal: Value


Inverse: TypeAlias = Callable[[Residues, Operand, Operand], Value]
"""From the result and the known operand to the other one."""


def _minus(d: Residues, a: Value, b: Value) -> Value:
    return d.add(a, d.multiply(d.number(-1), b))


_FIRST_KNOWN: dict[str, Inverse] = {
    "Add": lambda d, v, a: _minus(d, v.value, a.value),
    "Sub": lambda d, v, a: _minus(d, a.value, v.value),
    "Mul": lambda d, v, a: d.multiply(v.value, a.reciprocal),
    "Div": lambda d, v, a: d.multiply(a.value, v.reciprocal),
}
_SECOND_KNOWN: dict[str, Inverse] = {
    "Add": _FIRST_KNOWN["Add"],
    "Sub": lambda d, v, b: d.add(v.value, b.value),
    "Mul": _FIRST_KNOWN["Mul"],
    "Div": lambda d, v, b: d.multiply(v.value, b.value),
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
        for target in sorted(targets, key=lambda n: (table.sizes[n], n))[:MOST_TARGETS]:
            found = sorted(peeler.spellings(target), key=lambda pair: size(*pair.right))
            yield from found[:MOST_SPELLINGS]


@dataclass(frozen=True)
class _Peeled:
    """One operator taken off all rests, with each of some operands: rest by rest, operand by operand."""

    domain: Residues
    inverse: Inverse
    rests: list[Rest]
    layers: list[Layer]
    results: list[Operand]
    """What the rests leave, in each world."""
    known: list[Operand]
    """The operands of the layers, in each world; one where the template holds it."""

    def values(self, world: int) -> Value:
        """All that is left."""
        wide = Operand(*(v.map(lambda p: p[..., :, None]) for v in self.results[world]))
        narrow = Operand(*(v.map(lambda p: p[..., None, :]) for v in self.known[world]))
        found = self.inverse(self.domain, wide, narrow)
        return found.map(lambda p: p.reshape(*p.shape[:-2], -1))

    def some(self, world: int, columns: Array) -> Value:
        """What is left at these places of `values`."""
        rests, layers = np.divmod(columns, len(self.layers))
        left = Operand(*(_taken(v, rests) for v in self.results[world]))
        return self.inverse(self.domain, left, Operand(*(_taken(v, layers) for v in self.known[world])))

    def rest(self, column: int) -> Rest:
        rest, layer = divmod(column, len(self.layers))
        return (*self.rests[rest], self.layers[layer])


class _Peeler:
    """For targets of one shape."""

    def __init__(self, table: Table, signature: Signature) -> None:
        self.table, self.signature = table, signature
        self.stage, self.domain = table.stage, table.stage.domain
        self.worlds = range(len(signature))
        self._operands: dict[tuple[tuple[int, ...], int], Operand] = {}
        self._numbers: dict[tuple[str, int], Operand] = {}
        self.known: dict[int, int] = {}
        self.operands: list[int] = []
        firsts = self._stretch()
        self.known_first = np.unique(np.concatenate(firsts)) if firsts else np.zeros(0, np.uint64)
        """Fingerprints in the first world alone: most of what is left differs there already."""

    def _stretch(self) -> list[Array]:
        """All values that broadcast to the target's shape, with their fingerprints at it; returns those of the first
        world."""
        goals = self.stage.scene.goals
        firsts: list[Array] = []
        for s, signature in enumerate(self.table.signatures):
            if not all(_fits(small, large) for small, large in zip(signature, self.signature, strict=True)):
                continue
            numbers = [n for (_, of), members in self.table.members.items() if of == s for n in members]
            for start in range(0, len(numbers), 4096):
                part = numbers[start : start + 4096]
                batch = [
                    self._at_shape(self.table.operand_values(np.asarray(part), w), w, len(part)) for w in self.worlds
                ]
                firsts.append(self.stage.fingerprint(batch[0], 0))
                for number, key in zip(part, self._keys(batch), strict=True):
                    if self.known.setdefault(key, number) == number:
                        self.operands.append(number)
        self.operands = [n for n in self.operands if not _is_goal(self.table.terms[n], goals)]
        self.operands.sort(key=lambda n: (self.table.sizes[n], n))
        return firsts

    def _at_shape(self, value: Value, world: int, count: int) -> Value:
        shape = self.signature[world]
        rank = len(shape)

        def stretch(part: Array) -> Array:
            lead = (1,) * (rank + 1 - part.ndim)
            return np.ascontiguousarray(np.broadcast_to(part.reshape(lead + part.shape), (*shape, count)))

        return value.map(stretch)

    def _keys(self, batch: Batch) -> list[int]:
        return self.stage.key(enumerate(batch)).tolist()

    def spellings(self, target: int) -> Iterator[Pair]:
        goal = self.table.terms[target]
        rests: list[Rest] = [()]
        batch = [self.table.operand_values(np.asarray([target]), w) for w in self.worlds]
        seen = set(self._keys(batch))
        for step in range(1, STEPS):
            further: list[tuple[list[Rest], Batch]] = []
            for peeled in self._peeled(rests, batch, LARGEST if step == 1 else LIGHT):
                values = [peeled.values(w) for w in self.worlds]
                light: list[int] = []
                for k, key in enumerate(self._keys(values)):
                    if key in self.known:
                        yield Pair((goal,), (self._built(peeled.rest(k), self.known[key]),))
                    elif key not in seen:  # as when enumerating: a rest that was met is not peeled again
                        seen.add(key)
                        if self._is_light(peeled.layers[k % len(peeled.layers)]):
                            light.append(k)
                if light:
                    taken = [_taken(v, np.asarray(light)) for v in values]
                    further.append(([peeled.rest(k) for k in light], taken))
            if not further:
                return
            rests = [rest for found, _ in further for rest in found]
            batch = [_joined([values[w] for _, values in further]) for w in self.worlds]
        for peeled in self._peeled(rests, batch, LARGEST):
            first = self.stage.fingerprint(peeled.values(0), 0)
            columns = self._met_first(first)
            if not columns.size:
                continue
            for k, key in zip(columns, self._keys([peeled.some(w, columns) for w in self.worlds]), strict=True):
                if key in self.known:
                    yield Pair((goal,), (self._built(peeled.rest(int(k)), self.known[key]),))

    def _met_first(self, keys: Array) -> Array:
        """Where the keys are those of known values in the first world."""
        if not len(self.known_first):
            return np.zeros(0, np.intp)
        places = np.searchsorted(self.known_first, keys)
        inside = np.minimum(places, len(self.known_first) - 1)
        return np.flatnonzero(self.known_first[inside] == keys)

    def _is_light(self, layer: Layer) -> bool:
        return layer.known is None or self.table.sizes[layer.known] <= LIGHT

    def _peeled(self, rests: list[Rest], batch: Batch, largest: int) -> Iterator[_Peeled]:
        """One layer off each of the rests, in every way there is."""
        results = [self._operand(value) for value in batch]
        ways = sum(t.call.op in _FIRST_KNOWN for t in self.stage.scene.templates)
        most = max(16, MOST // (len(rests) * max(1, ways)))
        numbers = list(takewhile(lambda n: self.table.sizes[n] <= largest, islice(self.operands, most)))
        for t, template in enumerate(self.stage.scene.templates):
            op = template.call.op
            if template.is_composite or template.outputs > 1 or t in self.stage.scene.goals:
                continue
            if template.call.domain or op not in _FIRST_KNOWN:
                continue
            if template.slots == 1 and template.numbers:
                first = isinstance(template.call.operands[0], Number)
                inverse = (_FIRST_KNOWN if first else _SECOND_KNOWN)[op]
                known = [self._number(template.numbers[0], w) for w in self.worlds]
                yield _Peeled(self.domain, inverse, rests, [Layer(t, None, first)], results, known)
            elif template.slots == 2:
                for first in (True,) if template.commutative else (True, False):
                    inverse = (_FIRST_KNOWN if first else _SECOND_KNOWN)[op]
                    yield from self._by_operands(rests, results, numbers, Layer(t, None, first), inverse)

    def _operand(self, value: Value) -> Operand:
        self.domain.undefined()  # forgotten: a rest that was divided by zero meets nothing, or is not proved
        return Operand(value, self.domain.call("reciprocal", [value]))

    def _number(self, number: Number, world: int) -> Operand:
        key = (str(number.expression), world)
        if key not in self._numbers:
            names = {n: v for n, v in self.stage.scene.worlds[world].items() if isinstance(v, int)}
            self._numbers[key] = self._operand(self.stage.number(evaluate(number.expression, names)))
        return self._numbers[key]

    def _by_operands(
        self, rests: list[Rest], results: list[Operand], numbers: list[int], layer: Layer, inverse: Inverse
    ) -> Iterator[_Peeled]:
        step = max(1, BLOCK // len(rests))
        for start in range(0, len(numbers), step):
            part = tuple(numbers[start : start + step])
            known = [self._known_operands(part, w) for w in self.worlds]
            layers = [layer._replace(known=n) for n in part]
            yield _Peeled(self.domain, inverse, rests, layers, results, known)

    def _known_operands(self, part: tuple[int, ...], world: int) -> Operand:
        if (part, world) not in self._operands:
            gathered = [self._at_shape(self.table.operand_values(np.asarray([n]), world), world, 1) for n in part]
            self._operands[(part, world)] = self._operand(_joined(gathered))
        return self._operands[(part, world)]

    def _built(self, rest: Rest, inner: int) -> Term:
        """The spelling: the layers around a value."""
        term = self.table.terms[inner]
        for layer in reversed(rest):
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


def _taken(value: Value, columns: Array) -> Value:
    return value.map(lambda part: part[..., columns])


def _joined(values: list[Value]) -> Value:
    return Value(*(together(part) for part in zip(*values, strict=True)))  # pyright: ignore[reportArgumentType]
