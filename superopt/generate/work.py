"""Which operands an operator is tried with, in portions that any process can work out for itself."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from superopt.generate.residues import Array
from superopt.generate.stage import Stage
from superopt.generate.table import NONE, Group, Table

PORTION = 1 << 18
"""Combinations in one portion, at most."""
MANY = 5
"""Operands from which on a target is looked for of inputs alone: of everything else there would be too many."""


class Work(NamedTuple):
    """One operator, one of its results, and a stretch of the combinations of operands from these groups.

    With `sharing`, the operands are instead the listed ones: those that share operators with one another.
    """

    template: int
    output: int
    groups: tuple[Group, ...]
    start: int
    stop: int
    sharing: Array | None = None


def portions(table: Table, stage: Stage, level: int) -> Iterator[Work]:
    """All work whose graphs have exactly `level` operators."""
    overlapping = _overlapping(table, level)
    for t, template in enumerate(stage.scene.templates):
        if _is_pointless(stage, t, level):
            continue
        for groups in _combinations(table, stage, t, level):
            total = 1
            for group in groups:
                total *= len(table.members[group])
            for output, start in itertools.product(range(template.outputs), range(0, total, PORTION)):
                yield Work(t, output, groups, start, min(start + PORTION, total))
        if template.slots == 2:
            for groups, pairs in overlapping.items():
                wanted = pairs[:, pairs[0] <= pairs[1]] if template.commutative else pairs
                if wanted.size and stage.apply(t, tuple(table.signatures[g[1]] for g in groups)) is not None:
                    for output in range(template.outputs):
                        yield Work(t, output, groups, 0, wanted.shape[1], wanted)


def _is_pointless(stage: Stage, t: int, level: int) -> bool:
    """Whether nothing is built upon it, and it is about weights alone; or it is a target of many operands that are not
    all inputs."""
    scene, template = stage.scene, stage.scene.templates[t]
    about_weights = 0 < template.slots == len(template.weights) and level >= scene.max_ops
    return about_weights or (t in scene.goals and template.slots >= MANY and level > 1)


def chains(table: Table, stage: Stage, level: int) -> Iterator[Work]:
    """Of the work of a level, that of operators with one operand."""
    for t, template in enumerate(stage.scene.templates):
        if template.slots == 1 and t not in stage.scene.goals:
            for groups in _combinations(table, stage, t, level):
                total = len(table.members[groups[0]])
                for output, start in itertools.product(range(template.outputs), range(0, total, PORTION)):
                    yield Work(t, output, groups, start, min(start + PORTION, total))


def _combinations(table: Table, stage: Stage, t: int, level: int) -> Iterator[tuple[Group, ...]]:
    """Groups for each operand that fit together, of `level` − 1 operators in all."""
    template = stage.scene.templates[t]
    if template.slots == 0:
        if level == 1 and stage.apply(t, ()) is not None:
            yield ()
        return
    by_size = [table.groups(size) for size in range(level)]
    for sizes in itertools.product(range(level), repeat=template.slots):
        if sum(sizes) != level - 1 or (template.commutative and sizes[0] < sizes[1]):
            continue
        for groups in itertools.product(*(by_size[s] for s in sizes)):
            if template.commutative and sizes[0] == sizes[1] and groups[0][1] > groups[1][1]:
                continue
            if stage.apply(t, tuple(table.signatures[g[1]] for g in groups)) is not None:
                yield groups


def _overlapping(table: Table, level: int) -> dict[tuple[Group, ...], Array]:
    """Pairs of values that share operators and have `level` − 1 of them together, as columns."""
    sets = [frozenset(int(o) for o in row if o != NONE) for row in table.operators]
    by_set: dict[frozenset[int], list[int]] = defaultdict(list)
    by_operator: dict[int, list[int]] = defaultdict(list)
    for number, used in enumerate(sets):
        if table.is_goal(number):
            sets[number] = used = frozenset()
        by_set[used].append(number)
        if len(used) < level - 1:
            for operator in used:
                by_operator[operator].append(number)
    found: dict[tuple[Group, ...], list[tuple[int, int]]] = defaultdict(list)
    for a, used in enumerate(sets):
        for b in _inside(used, by_set) if len(used) == level - 1 else _beside(used, by_operator, sets, level):
            key = ((len(used), table.signature_of[a]), (len(sets[b]), table.signature_of[b]))
            found[key].append((a, b))
            if len(used) == level - 1 > len(sets[b]):
                found[key[::-1]].append((b, a))
    return {key: np.asarray(pairs, np.int64).T for key, pairs in found.items()}


def _inside(used: frozenset[int], by_set: dict[frozenset[int], list[int]]) -> Iterator[int]:
    """Values whose operators are all among these."""
    for count in range(1, len(used) + 1):
        for subset in itertools.combinations(sorted(used), count):
            yield from by_set.get(frozenset(subset), ())


def _beside(
    used: frozenset[int], by_operator: dict[int, list[int]], sets: list[frozenset[int]], level: int
) -> Iterator[int]:
    """Values that share some of these operators and have others, so many in all; of the smaller values."""
    near: set[int] = set()
    for operator in used:
        near.update(by_operator[operator])
    yield from (b for b in sorted(near) if len(used | sets[b]) == level - 1)


def operands(table: Table, stage: Stage, work: Work) -> list[Array]:
    """The operands' numbers, one array for each slot, in a fixed order: without those that are tried elsewhere (in the
    other order, or at a smaller size since they share operators) and those that read too many inputs."""
    if work.sharing is not None:
        columns = [work.sharing[0], work.sharing[1]]
        return _within(columns, _fit(table, stage, work.template, columns))
    flat = np.arange(work.start, work.stop)
    columns: list[Array] = []
    for group in reversed(work.groups):
        members = np.asarray(table.members[group], np.int64)
        columns.insert(0, members[flat % len(members)])
        flat = flat // len(members)
    if not columns:
        return []
    keep = _fit(table, stage, work.template, columns)
    for a, b in itertools.combinations(columns, 2):
        keep &= ~_share(table.operators[a], table.operators[b])
    if stage.scene.templates[work.template].commutative and work.groups[0] == work.groups[1]:
        keep &= columns[0] <= columns[1]
    return _within(columns, keep)


def _within(columns: list[Array], keep: Array) -> list[Array]:
    return [column[keep] for column in columns]


def _fit(table: Table, stage: Stage, template: int, columns: list[Array]) -> Array:
    keep = _inputs_fit(table, stage, columns) & _weights_fit(table, stage, template, columns)
    if stage.scene.distinct:
        for a, b in itertools.combinations(columns, 2):
            keep &= a != b
    return keep


def _inputs_fit(table: Table, stage: Stage, columns: list[Array]) -> Array:
    read = table.inputs[columns[0]]
    for column in columns[1:]:
        read = read | table.inputs[column]
    return np.bitwise_count(read) <= stage.scene.max_inputs


def _weights_fit(table: Table, stage: Stage, template: int, columns: list[Array]) -> Array:
    """Whether slots for weights have operands that read weights alone, and slots for what runs have others."""
    scene = stage.scene
    data = np.uint64(sum(1 << k for k, g in enumerate(scene.given) if g.name not in scene.weights))
    keep = np.ones(len(columns[0]), bool)
    for slot in scene.templates[template].weights:
        keep &= (table.inputs[columns[slot]] & data) == 0
    for slot in scene.templates[template].running:
        keep &= (table.inputs[columns[slot]] & data) != 0
    return keep


def _share(a: Array, b: Array) -> Array:
    """Whether rows of operators have one in common."""
    found = np.zeros(len(a), bool)
    for i, j in itertools.product(range(a.shape[1]), range(b.shape[1])):
        found |= (a[:, i] == b[:, j]) & (a[:, i] != NONE)
    return found
