"""An e-graph: many terms at once, in classes of terms known to be equal.

A node is an operator over classes instead of terms, so that a class stands for all the terms that its nodes spell.
Equal nodes are one (hash-consing); when two classes become one, so do nodes that differed only in them (congruence,
restored by `rebuild`). Nodes of commutative operators have their operands in order, so Add(x, y) is Add(y, x).

Everything is kept in lists and dicts, which are read in the order in which they were filled: equal calls give equal
results, whatever the seed of hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from superopt.generate.pattern import OUTPUTS, Building, Pattern, code_of
from superopt.generate.term import Template, Term

Operands: TypeAlias = "tuple[int, ...]"
Spelled: TypeAlias = "tuple[int, Operands]"
"""A node: its operator's code (a leaf's is negative) and the classes of its operands."""

Shaper: TypeAlias = "Callable[[str | int, int, tuple[int | None, ...]], int | None]"
"""The number of a shape, from a leaf's name, or an operator's template, output and operands' shapes; None: unknown."""


class Match(NamedTuple):
    """Where a pattern fits: the classes of its terms and of its leaves, and the age of the oldest node it took."""

    roots: Operands
    values: Operands
    age: int


class EGraph:
    """`most_nodes` and `most_size` (operators in a node's smallest term, counted as a tree) bound what `build` adds;
    `add` is not bounded: what is asked about must be in."""

    def __init__(
        self, templates: Sequence[Template], *, most_nodes: int = 200_000, most_size: int = 1 << 30,
        shaper: Shaper | None = None,
    ) -> None:  # fmt: skip
        self.most_nodes, self.most_size = most_nodes, most_size
        self.fresh: dict[int, dict[int, None]] = {}
        """By code, classes that got such a node, or a younger one, since this was last emptied."""
        self.joined: dict[int, None] = {}
        """Classes that were made from two since this was last emptied."""
        self._commutative = [t.commutative for t in templates]
        self._shaper = shaper
        self._leaves: dict[str, int] = {}
        self._parent: list[int] = []
        self._forms: list[dict[int, dict[Operands, int]]] = []
        """For each class, its nodes: by code, operands and their age."""
        self._uses: list[dict[int, list[Operands]]] = []
        """For each class, nodes with it as an operand, by code; some may have been spelled anew since."""
        self._used: list[int] = []
        """For each class, how many those are."""
        self._size: list[int] = []
        self._shape: list[int | None] = []
        self._known: dict[Spelled, int] = {}
        self._by_code: dict[int, dict[int, None]] = {}
        self._pending: list[dict[int, list[Operands]]] = []

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self._known)

    def find(self, which: int) -> int:
        """The class that this one has become."""
        parent = self._parent
        while parent[which] != which:
            parent[which] = parent[parent[which]]
            which = parent[which]
        return which

    def add(self, term: Term) -> int:
        """The class of a term, which is in the graph from now on, with age 0."""
        if isinstance(term, str):
            return self._enter(self._leaf(term), (), 0, term)
        return self._enter(code_of(term), self._ordered(term.template, [self.add(o) for o in term.operands]), 0)

    def lookup(self, term: Term) -> int | None:
        """The class of a term if it is in the graph."""
        operands: list[int] = []
        if isinstance(term, str):
            found = self._known.get((self._leaf(term), ()))
            return None if found is None else self.find(found)
        for operand in term.operands:
            inner = self.lookup(operand)
            if inner is None:
                return None
            operands.append(inner)
        found = self._known.get((code_of(term), self._ordered(term.template, operands)))
        return None if found is None else self.find(found)

    def equal(self, a: Term, b: Term) -> bool:
        """Whether two terms are in the graph, in one class."""
        found = self.lookup(a)
        return found is not None and found == self.lookup(b)

    def shape(self, which: int) -> int | None:
        return self._shape[self.find(which)]

    def _leaf(self, name: str) -> int:
        return self._leaves.setdefault(name, -1 - len(self._leaves))

    def _ordered(self, template: int, operands: Iterable[int]) -> Operands:
        return tuple(sorted(operands) if self._commutative[template] else operands)

    def _enter(self, code: int, operands: Operands, age: int, leaf: str = "") -> int:
        """The class of a node, made if need be. A node that is reached in fewer steps than before is younger again."""
        found = self._known.get((code, operands))
        if found is not None:
            found = self.find(found)
            if self._forms[found][code][operands] > age:
                self._forms[found][code][operands] = age
                self.fresh.setdefault(code, {})[found] = None
            return found
        which = len(self._parent)
        self._parent.append(which)
        self._forms.append({code: {operands: age}})
        self._uses.append({})
        self._used.append(0)
        self._size.append(int(code >= 0) + sum(self._size[o] for o in operands))
        self._shape.append(self._shaped(code, operands, leaf))
        self._known[code, operands] = which
        self._by_code.setdefault(code, {})[which] = None
        self._use(code, operands)
        self.fresh.setdefault(code, {})[which] = None
        return which

    def _use(self, code: int, operands: Operands) -> None:
        for operand in dict.fromkeys(operands):
            self._uses[operand].setdefault(code, []).append(operands)
            self._used[operand] += 1

    def _shaped(self, code: int, operands: Operands, leaf: str = "") -> int | None:
        if self._shaper is None:
            return None
        if code < 0:
            return self._shaper(leaf, 0, ())
        return self._shaper(code // OUTPUTS, code % OUTPUTS, tuple(self._shape[o] for o in operands))

    def merge(self, a: int, b: int) -> bool:
        """Make two classes one. `rebuild` must follow before anything is looked up or matched."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return False
        if self._used[a] < self._used[b]:
            a, b = b, a
        self._parent[b] = a
        for code, nodes in self._forms[b].items():
            mine = self._forms[a].setdefault(code, {})
            for operands, age in nodes.items():
                if mine.setdefault(operands, age) != age:
                    mine[operands] = min(age, mine[operands])
                    self.fresh.setdefault(code, {})[a] = None
            self._by_code[code].pop(b, None)
            self._by_code[code][a] = None
        self._pending.append(self._uses[b])
        self._forms[b], self._uses[b] = {}, {}
        self._size[a] = min(self._size[a], self._size[b])
        self.joined[a] = None
        return True

    def rebuild(self) -> None:
        """Spell nodes anew whose operands became others; where two thereby coincide, so do their classes."""
        while self._pending:
            for code, nodes in self._pending.pop().items():
                for operands in nodes:
                    self._respell(code, operands)

    def _respell(self, code: int, operands: Operands) -> None:
        which = self._known.pop((code, operands), None)
        if which is None:
            return
        which = self.find(which)
        nodes = self._forms[which][code]
        age = nodes.pop(operands)
        anew = self._ordered(code // OUTPUTS, [self.find(o) for o in operands])
        if nodes.setdefault(anew, age) > age:
            nodes[anew] = age
            self.fresh.setdefault(code, {})[which] = None
        other = self._known.setdefault((code, anew), which)
        self._use(code, anew)
        self.merge(other, which)

    def using(self, which: int, code: int) -> Iterable[int]:
        """Classes with a node of this operator that has this class as an operand."""
        nodes = self._uses[which].get(code, ())
        found = [self._known.get((code, operands)) for operands in nodes]
        return dict.fromkeys(self.find(c) for c in found if c is not None)

    def codes(self, which: int) -> Iterable[int]:
        """The operators of a class's nodes."""
        return self._forms[which]

    def having(self, code: int) -> list[int]:
        """The classes with a node of this operator."""
        return list(self._by_code.get(code, ()))

    def match(self, pattern: Pattern, roots: Iterable[int] | None = None, *, younger: int = 1 << 30) -> list[Match]:
        """Every way in which the pattern fits, with its first term in one of the classes `roots`, over nodes younger
        than a limit. A leaf of the pattern stands for one class; equal terms in it for equal classes."""
        found: dict[Match, None] = {}
        registers = [0] * pattern.registers
        starts = None if roots is None else list(dict.fromkeys(self.find(r) for r in roots))
        self._run(pattern, 0, registers, 0, starts, younger, found)
        return list(found)

    def _run(
        self, pattern: Pattern, at: int, registers: list[int], age: int, roots: list[int] | None, younger: int,
        found: dict[Match, None],
    ) -> None:  # fmt: skip
        if at == len(pattern.program):
            values = tuple([registers[r] for r in pattern.values])
            found[Match(tuple([registers[r] for r in pattern.roots]), values, age)] = None
            return
        register, code, operands, starts = pattern.program[at]
        if starts:
            for root in self.having(code) if roots is None else roots:
                registers[register] = root
                self._run(pattern, at + 1, registers, age, None, younger, found)
            return
        nodes = self._forms[registers[register]].get(code)
        if nodes is None:
            return
        both = self._commutative[code // OUTPUTS]
        for spelled, node_age in nodes.items():
            if node_age >= younger:
                continue
            turned = both and spelled[0] != spelled[1]
            for classes in (spelled, spelled[::-1]) if turned else (spelled,):
                for (target, new), which in zip(operands, classes, strict=True):
                    if new:
                        registers[target] = which
                    elif registers[target] != which:
                        break
                else:
                    self._run(pattern, at + 1, registers, max(age, node_age), None, younger, found)

    def build(self, building: Building, values: Operands, age: int) -> Operands | None:
        """The classes of terms over these classes; nodes that are not there yet get this age. None, and nothing is
        added, where that would be too many nodes, too large a term, or an operator that does not fit its operands."""
        slots = [self.find(v) for v in values]
        there = 0
        for code, refs in building.steps:
            found = self._known.get((code, self._ordered(code // OUTPUTS, [slots[r] for r in refs])))
            if found is None:
                break
            slots.append(self.find(found))
            there += 1
        missing = len(building.steps) - there
        if missing:
            fits = len(self._known) + missing <= self.most_nodes
            if not fits or not self._legal(building.steps[there:], slots):
                return None
        del slots[len(values) :]
        for code, refs in building.steps:
            slots.append(self._enter(code, self._ordered(code // OUTPUTS, [slots[r] for r in refs]), age))
        return tuple(slots[r] for r in building.results)

    def _legal(self, steps: Sequence[tuple[int, tuple[int, ...]]], slots: list[int]) -> bool:
        sizes, shapes = [self._size[s] for s in slots], [self._shape[s] for s in slots]
        for code, refs in steps:
            sizes.append(1 + sum(sizes[r] for r in refs))
            if sizes[-1] > self.most_size:
                return False
            if self._shaper is not None:
                shapes.append(self._shaper(code // OUTPUTS, code % OUTPUTS, tuple(shapes[r] for r in refs)))
                if shapes[-1] is None:
                    return False
        return True


def graph_of(terms: Iterable[Term], templates: Sequence[Template], *, shaper: Shaper | None = None) -> EGraph:
    """A graph of just these terms, nothing merged: each class is one term."""
    graph = EGraph(templates, shaper=shaper)
    for term in terms:
        graph.add(term)
    return graph
