"""All graphs of a scene up to a size, by value: what equals something smaller is a candidate and is not extended.

Level by level. Below the last level every new value is kept, with its numbers in all worlds, to build on. On the last
level only a fingerprint in the first world is kept, eight bytes for each graph; those that meet another are evaluated
again in all worlds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from superopt.generate.keys import Keys, among
from superopt.generate.peel import spellings
from superopt.generate.residues import Array, Value
from superopt.generate.stage import Applied, Stage
from superopt.generate.table import Table
from superopt.generate.term import Node, Pair, Term
from superopt.generate.work import Work, chains, operands, portions

MEMORY = 2 << 30
"""Bytes for the last level's fingerprints; more of them go to disk."""
CHAIN = 4
"""Levels beyond the last in which only operators with one operand are added, where there is a target."""
MOST_IN_CHAINS = 200_000
MOST_MET = 1 << 19
"""Graphs of the last level that meet another and are kept: a number, so that no amount of memory changes the result."""
NO_VALUE = np.uint64(0)
"""The fingerprint of what divides by zero."""
ELEMENTS = 1 << 21
"""Numbers in one evaluation, about."""

Spread = Callable[[Table, Sequence[Work], Sequence[int]], Iterable["Array"]]
"""Work out the fingerprints of portions, in order: with a table and the worlds to use."""
Notice = Callable[["Progress"], None]


class Found(NamedTuple):
    """One graph: an operator on values of the table."""

    template: int
    output: int
    operands: tuple[int, ...]


@dataclass
class Progress:
    """How far the enumeration is."""

    scene: str
    level: int = 0
    portions: int = 0
    portions_done: int = 0
    graphs: int = 0
    """Evaluated."""
    values: int = 0
    covered: float = 0.0
    """Graphs that these stand for: every spelling of every operand."""
    candidates: int = 0
    beyond: int = 0
    """Graphs that met another, but were too many to keep: the largest."""
    started: float = field(default_factory=time.monotonic)


def fingerprints(table: Table, work: Work, worlds: Sequence[int]) -> Array:
    """The fingerprint of each combination of operands in a portion, over these worlds."""
    stage = table.stage
    columns = operands(table, stage, work)
    applied = stage.apply(work.template, tuple(table.signatures[g[1]] for g in work.groups))
    assert applied is not None
    count = len(columns[0]) if columns else 1
    return _keys(table, applied, work.output, columns, count, worlds)


def _keys(
    table: Table, applied: list[Applied], output: int, columns: list[Array], count: int, worlds: Sequence[int]
) -> Array:
    found = np.empty(count, np.uint64)
    step = max(1, ELEMENTS // _effort(applied, output, columns, table))
    for start in range(0, count, step):
        stop = min(start + step, count)
        part = [column[start:stop] for column in columns]
        table.stage.domain.undefined()
        key = table.stage.key((w, _value(table, applied, output, part, stop - start, w)) for w in worlds)
        found[start:stop] = np.where(table.stage.domain.undefined(), NO_VALUE, key)
    return found


def _effort(applied: list[Applied], output: int, columns: list[Array], table: Table) -> int:
    """Numbers that one combination takes: those of its result times the larger operand's, at worst."""
    sizes = [_elements(table, column) for column in columns if len(column)]
    result = math.prod(applied[0].shape(output))
    return max([result, *sizes]) * (4 if len(columns) > 1 else 1)


def _elements(table: Table, column: Array) -> int:
    signature = table.signatures[table.signature_of[int(column[0])]]
    return math.prod(signature[0])


def _value(table: Table, applied: list[Applied], output: int, part: list[Array], count: int, world: int) -> Value:
    given = [table.operand_values(column, world) for column in part]
    return table.stage.values(applied, output, world, given, count)


def alone(table: Table, works: Sequence[Work], worlds: Sequence[int]) -> Iterator[Array]:
    """In this process."""
    for work in works:
        yield fingerprints(table, work, worlds)


class Enumeration:
    """The values and candidates of a scene."""

    def __init__(
        self, stage: Stage, max_ops: int, spread: Spread = alone, notice: Notice = lambda _: None, *,
        memory: int = MEMORY,
    ) -> None:  # fmt: skip
        self.memory = memory
        self.stage, self.max_ops, self.spread, self.notice = stage, max_ops, spread, notice
        self.table = Table(stage, max_ops + (CHAIN if stage.scene.goals else 0))
        self.progress = Progress(stage.scene.name)
        self.worlds = tuple(range(len(stage.scene.worlds)))
        self.level_counts: list[float] = [0.0]
        self._leaves()
        self.table.settle()

    def _leaves(self) -> None:
        for given in self.stage.scene.given:
            signature = self.table.signature_id(self.stage.leaves[given.name])
            values = [self.stage.draw(given.name, world) for world in self.worlds]
            key, first = self.stage.key(enumerate(values)), self.stage.fingerprint(values[0], 0)
            self.table.add([given.name], signature, values, key.tolist(), first.tolist(), [1.0])

    def run(self) -> Iterator[Pair]:
        """Every pair of graphs that are equal in all worlds: the smaller one first."""
        towards = bool(self.stage.scene.goals)
        for level in range(1, self.max_ops + 1):
            works = self._begin(level, list(portions(self.table, self.stage, level)))
            yield from self._grow(works) if level < self.max_ops or towards else self._last(works)
        if towards:
            yield from self._chains()
            yield from spellings(self.table)

    def _begin(self, level: int, works: list[Work]) -> list[Work]:
        self.progress.level, self.progress.values = level, len(self.table)
        self.progress.portions, self.progress.portions_done = len(works), 0
        self.notice(self.progress)
        return works

    def _chains(self) -> Iterator[Pair]:
        """Further levels for operators with one operand only: variances and their roots are long chains."""
        for level in range(self.max_ops + 1, self.max_ops + CHAIN + 1):
            works = self._begin(level, list(chains(self.table, self.stage, level)))
            if sum(w.stop - w.start for w in works) > MOST_IN_CHAINS:
                return
            yield from self._grow(works)

    def _grow(self, works: list[Work]) -> Iterator[Pair]:
        """A level that is built on: new values enter the table."""
        found: dict[int, list[Found]] = {}
        for work, keys in zip(works, self._spread(works, self.worlds), strict=True):
            for key, graph in zip(keys.tolist(), self._decode(work, None), strict=True):
                if key != NO_VALUE:
                    found.setdefault(key, []).append(graph)
        new: dict[int, Found] = {}
        for key, graphs in found.items():
            known = self.table.keys.get(key)
            first = min(graphs, key=lambda g: self.table.effort_of(self._term(g))) if len(graphs) > 1 else graphs[0]
            for graph in graphs if known is not None else [g for g in graphs if g is not first]:
                yield self._pair(self.table.terms[known] if known is not None else self._term(first), graph)
            if known is None:
                new[key] = first
        spelled = {key: sum(self._spellings(g) for g in graphs) for key, graphs in found.items()}
        self.level_counts.append(sum(spelled.values()))
        self.progress.covered += sum(spelled.values())
        self._keep(new, spelled)
        self.table.settle()

    def _spellings(self, graph: Found) -> float:
        return math.prod((self.table.spellings[o] for o in graph.operands), start=1.0)

    def _keep(self, new: dict[int, Found], spelled: dict[int, float]) -> None:
        """Evaluate again those that are new, and keep their numbers."""
        groups: dict[tuple[int, int, tuple[int, ...]], list[tuple[int, Found]]] = {}
        for key, graph in new.items():
            shapes = tuple(self.table.signature_of[o] for o in graph.operands)
            groups.setdefault((graph.template, graph.output, shapes), []).append((key, graph))
        for (template, output, shapes), members in groups.items():
            applied = self.stage.apply(template, tuple(self.table.signatures[s] for s in shapes))
            assert applied is not None
            columns = [np.asarray([g.operands[k] for _, g in members], np.int64) for k in range(len(shapes))]
            values = [_value(self.table, applied, output, columns, len(members), w) for w in self.worlds]
            first = self.stage.fingerprint(values[0], 0).tolist()
            signature = self.table.signature_id(self.stage.signature(applied, output))
            terms = [self._term(graph) for _, graph in members]
            keys = [key for key, _ in members]
            self.table.add(terms, signature, values, keys, first, [spelled[k] for k in keys])
            self.table.settle()

    def _last(self, works: list[Work]) -> Iterator[Pair]:
        """The last level: fingerprints in the first world only, and whatever meets another is looked at again."""
        known = np.unique(np.asarray(self.table.first_keys, np.uint64))
        pieces = Keys(self.memory)
        covered = 0.0
        spellings = np.asarray(self.table.spellings)
        for work, keys in zip(works, self._spread(works, (0,)), strict=True):
            pieces.append(keys)
            columns = operands(self.table, self.stage, work)
            covered += float(np.prod([spellings[c] for c in columns], axis=0).sum()) if columns else 1.0
        self.level_counts.append(covered)
        self.progress.covered += covered
        graphs = self._smallest(works, pieces, pieces.meeting(known))
        pieces.close()
        yield from self._confirmed(graphs)

    def _smallest(self, works: list[Work], pieces: Keys, met: Array) -> list[Found]:
        """The graphs that met another: those with the fewest operators, written out, as many as are kept.

        The prover looks at the smallest first and at some thousands of them.
        """
        room = MOST_MET
        written = np.asarray(self.table.written, np.int64)
        sizes = [
            self._written(work, self._wanted(keys, met), written) for work, keys in zip(works, pieces, strict=True)
        ]
        counts = np.bincount(np.concatenate(sizes)) if sizes else np.zeros(1, np.int64)
        within = int(np.searchsorted(np.cumsum(counts), room, side="right"))  # sizes under this all have room
        most = max(within - 1, int(np.flatnonzero(counts)[0]) if counts.any() else 0)
        graphs: list[Found] = []
        for work, keys, size in zip(works, pieces, sizes, strict=True):
            if len(graphs) < room and (size <= most).any():
                wanted = self._wanted(keys, met)
                wanted[wanted] = size <= most
                graphs += self._decode(work, wanted)
        del graphs[room:]
        self.progress.beyond = int(counts.sum()) - len(graphs)
        return graphs

    @staticmethod
    def _wanted(keys: Array, met: Array) -> Array:
        return among(keys, met) & (keys != NO_VALUE)

    def _written(self, work: Work, wanted: Array, written: Array) -> Array:
        """Operators, written out, of the wanted graphs of a portion."""
        found = np.ones(np.count_nonzero(wanted), np.int64)
        if len(found):
            for column in operands(self.table, self.stage, work):
                found += written[column[wanted]]
        return found.astype(np.uint8)

    def _confirmed(self, graphs: list[Found]) -> Iterator[Pair]:
        """Those that are equal in every world."""
        groups: dict[tuple[int, int, tuple[int, ...]], list[Found]] = {}
        for graph in graphs:
            shapes = tuple(self.table.signature_of[o] for o in graph.operands)
            groups.setdefault((graph.template, graph.output, shapes), []).append(graph)
        by_key: dict[int, list[Found]] = {}
        for (template, output, shapes), members in groups.items():
            applied = self.stage.apply(template, tuple(self.table.signatures[s] for s in shapes))
            assert applied is not None
            columns = [np.asarray([g.operands[k] for g in members], np.int64) for k in range(len(shapes))]
            keys = _keys(self.table, applied, output, columns, len(members), self.worlds)
            for key, graph in zip(keys.tolist(), members, strict=True):
                by_key.setdefault(key, []).append(graph)
        by_key.pop(int(NO_VALUE), None)
        for key, members in by_key.items():
            known = self.table.keys.get(key)
            members.sort()
            for graph in members if known is not None else members[1:]:
                yield self._pair(self.table.terms[known] if known is not None else self._term(members[0]), graph)

    def _spread(self, works: list[Work], worlds: Sequence[int]) -> Iterator[Array]:
        for keys in self.spread(self.table, works, worlds):
            self.progress.portions_done += 1
            self.progress.graphs += len(keys)
            self.notice(self.progress)
            yield keys

    def _decode(self, work: Work, wanted: Array | None) -> list[Found]:
        columns = operands(self.table, self.stage, work)
        if not columns:
            return [Found(work.template, work.output, ())]
        if wanted is not None:
            columns = [column[wanted] for column in columns]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [Found(work.template, work.output, row) for row in rows]

    def _term(self, graph: Found) -> Node:
        ordered = (
            tuple(sorted(graph.operands)) if self.stage.scene.templates[graph.template].commutative else graph.operands
        )
        return self.table.term(graph.template, graph.output, ordered)

    def _pair(self, smaller: Term, graph: Found) -> Pair:
        self.progress.candidates += 1
        return Pair((smaller,), (self._term(graph),))
