"""The values found so far. Each has one term, its smallest spelling, and its numbers in every world."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from superopt.generate.residues import Array, Value, together
from superopt.generate.stage import Signature, Stage
from superopt.generate.term import Node, Term

NONE = -1
Group: TypeAlias = tuple[int, int]
"""Values of one size and one signature."""


class Table:
    """Values in the order in which they were found; a value is known by its number."""

    def __init__(self, stage: Stage, most_ops: int) -> None:
        self.stage, self.most_ops = stage, most_ops
        self.terms: list[Term] = []
        self.sizes: list[int] = []
        self.signature_of: list[int] = []
        self.columns: list[int] = []
        self.inputs = np.zeros(0, np.uint64)
        """One bit for each input that a value reads."""
        self.operators = np.full((0, most_ops), NONE, np.int32)
        """The operators in its term, as numbers."""
        self.keys: dict[int, int] = {}
        """Fingerprints in all worlds, and whose they are."""
        self.first_keys: list[int] = []
        """Fingerprints in the first world."""
        self.efforts: list[int] = []
        """How many elements its term computes on the way, in the first world."""
        self.written: list[int] = []
        """How many operators its term has, written out."""
        self.spellings: list[float] = []
        """How many graphs are known to compute the value."""
        self.signatures: list[Signature] = []
        self._signature_ids: dict[Signature, int] = {}
        self._stores: dict[tuple[int, int], list[Value]] = defaultdict(list)
        self._operator_ids: dict[tuple[int, tuple[Term, ...]], int] = {}
        self.members: dict[Group, list[int]] = defaultdict(list)
        self._numbers: dict[Term, int] = {}

    def __len__(self) -> int:
        return len(self.terms)

    def is_goal(self, number: int) -> bool:
        """Whether it is a target, on which nothing is built."""
        term = self.terms[number]
        return isinstance(term, Node) and term.template in self.stage.scene.goals

    def signature_id(self, signature: Signature) -> int:
        if signature not in self._signature_ids:
            self._signature_ids[signature] = len(self.signatures)
            self.signatures.append(signature)
        return self._signature_ids[signature]

    def number(self, term: Term) -> int:
        return self._numbers[term]

    def groups(self, size: int) -> list[Group]:
        return sorted(g for g in self.members if g[0] == size)

    def operand_values(self, numbers: Array, world: int) -> Value:
        """The numbers of values that share a signature, one behind the other on the last axis."""
        signature = self.signature_of[int(numbers[0])]
        store = self._joined(signature, world)
        first = int(numbers[0])
        if len(numbers) > 1 and int(numbers[-1]) == first and bool((numbers == first).all()):
            column = self.columns[first]
            return store.map(lambda part: part[..., column : column + 1])
        columns = self._columns[numbers]
        return store.map(lambda part: np.take(part, columns, axis=-1))

    def _joined(self, signature: int, world: int) -> Value:
        pieces = self._stores[(signature, world)]
        if len(pieces) > 1:
            joined = Value(*map(together, zip(*pieces, strict=True)))  # pyright: ignore[reportArgumentType]
            pieces[:] = [joined]
        return pieces[0]

    def settle(self) -> None:
        """Make ready to be read by several processes."""
        self._columns = np.asarray(self.columns, np.int64)
        for signature, world in list(self._stores):
            self._joined(signature, world)

    def add(
        self,
        terms: Sequence[Term],
        signature: int,
        values: Sequence[Value],
        keys: Sequence[int],
        first: Sequence[int],
        spellings: Sequence[float],
    ) -> None:
        """New values of one signature, with their numbers in every world."""
        start = self._width(signature)
        elements = math.prod(self.signatures[signature][0])
        computed = any(isinstance(t, Node) and t.operands for t in terms)
        constant = _is_constant(values) if computed else [False] * len(terms)
        for world, value in enumerate(values):
            self._stores[(signature, world)].append(value)
        inputs, operators = [], []
        leaf_bits = {g.name: k for k, g in enumerate(self.stage.scene.given)}
        for k, term in enumerate(terms):
            number = len(self.terms)
            used = self._operators_of(term)
            self.terms.append(term)
            self._numbers[term] = number
            self.sizes.append(len(used))
            self.efforts.append(elements + self.effort_of(term) if isinstance(term, Node) else 0)
            self.written.append(self._written(term))
            self.signature_of.append(signature)
            self.columns.append(start + k)
            self.keys[keys[k]] = number
            self.first_keys.append(first[k])
            self.spellings.append(spellings[k])
            if not self.is_goal(number) and not constant[k]:  # on targets, and on x − x, nothing is built
                self.members[(len(used), signature)].append(number)
            operators.append([*used, *[NONE] * (self.most_ops - len(used))])
            inputs.append(self._inputs_of(term, leaf_bits))
        self.inputs = np.concatenate([self.inputs, np.asarray(inputs, np.uint64)])
        self.operators = np.concatenate([self.operators, np.asarray(operators, np.int32).reshape(-1, self.most_ops)])

    def effort_of(self, term: Node) -> int:
        """Elements that a term's operands compute."""
        return sum(self.efforts[self._numbers[o]] for o in term.operands)

    def _written(self, term: Term) -> int:
        return 0 if isinstance(term, str) else 1 + sum(self.written[self._numbers[o]] for o in term.operands)

    def _width(self, signature: int) -> int:
        return sum(piece.p.shape[-1] for piece in self._stores[(signature, 0)])

    def _operators_of(self, term: Term) -> list[int]:
        if isinstance(term, str):
            return []
        used = {int(o) for operand in term.operands for o in self.operators[self._numbers[operand]] if o != NONE}
        own = self._operator_ids.setdefault(term.operator, len(self._operator_ids))
        return sorted(used | {own})

    def _inputs_of(self, term: Term, bits: dict[str, int]) -> int:
        if isinstance(term, str):
            return 1 << bits[term]
        found = 0
        for operand in term.operands:
            found |= int(self.inputs[self._numbers[operand]])
        return found

    def term(self, template: int, output: int, operands: Sequence[int]) -> Node:
        """A term over values of the table; operands of a commutative operator in the table's order."""
        return Node(template, tuple(self.terms[o] for o in operands), output)


def _is_constant(values: Sequence[Value]) -> list[bool]:
    """Which of the batch are one number in all places of all worlds, though they were computed from random ones."""
    rows = [value.p.reshape(-1, value.p.shape[-1]) for value in values]
    return (np.concatenate(rows) == rows[0][:1]).all(axis=0).tolist()
