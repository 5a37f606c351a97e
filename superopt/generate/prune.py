"""Which of the candidates are worth proving: those that do not follow from what was proved already.

Candidates are proposed the smallest first; what is proved becomes a rule, and larger candidates that follow from the
rules are dropped (Ruler's way). A candidate is dropped when it

- is another one renamed, turned around, or with commutative operands exchanged;
- follows from accepted pairs: both sides fall into one class of an e-graph within `steps` rounds of rules. Instances of
  an accepted pair (Relu(Relu(Add(x, y))) = Relu(Add(x, y)) of Relu(Relu(x)) = Relu(x)), and pairs that hold put into a
  common context, are the short derivations, and counted apart.

**What rewriting reaches.** Equality alone does not say that a rewriter can get from one side to the other:
(MatMul(x, w), MatMul(x, v)) equals the two results of Split(MatMul(x, Concat(w, v))) by rules for one result each, but
these lead only from the Split to the MatMuls, as nothing in MatMul(x, w) says what v is; and rules are not used in
directions that cost more. So a candidate counts as derived only if, in a graph of one side's terms alone, the rules as
they are used reach the other side: from each side that has all leaves of the other and neither costs less nor, at equal
cost, has fewer operators. A rule for several results applies only where all of its old terms are found with one meaning
for each leaf. A graph of all candidates' terms, under all equalities, tells quickly what is not derivable.

**Macros** lead over a hill, where the optimizer would not climb. Some are candidates whose sides the rules make equal,
but only when used against the directions that they have. Others were derived; when nothing else is left they are looked
at again, and those that get cheaper, but only over graphs costlier than both ends, are proposed, those that gain most
first. See `hill`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from superopt.generate.derive import Book, Derivation, directions
from superopt.generate.egraph import EGraph
from superopt.generate.fitting import Shapes
from superopt.generate.hill import Walker
from superopt.generate.recipe import Scene
from superopt.generate.sameness import Key, abstracted, canonical, inside, pattern_key
from superopt.generate.term import Pair, Term, leaves, size
from superopt.generate.worth import cost, order, written
from superopt.ops.registry import Registry

SPARE = 1
"""Operators by which a term on the way may be larger than all candidates' terms."""
MOST_NODES_ALONE = 500
"""In the graph of one side's terms."""


@dataclass
class Pruned:
    """What became of candidates."""

    offered: int = 0
    renamed: int = 0
    """The same as another one but for names, sides and order; or the same on both sides."""
    instances: int = 0
    """Of accepted pairs."""
    context: int = 0
    """A pair that holds, put into a context."""
    derivable: int = 0
    """In other ways."""
    accepted: int = 0
    rejected: int = 0
    macros: int = 0
    """Of the accepted ones."""


@dataclass(frozen=True, eq=False)
class _Candidate:
    pair: Pair
    order: tuple[int, int, int, int, int, int, str]
    key: Key
    general: tuple[Key, ...]
    """Keys of pairs of which this is an instance."""
    inside: tuple[Pair, ...]


class Pruner:
    """`registry` lets leaves of rules stand only for terms of shapes that they fit; without it they stand for any."""

    def __init__(
        self, scene: Scene, *, steps: int = 3, most_nodes: int = 200_000, most_macros: int = 50,
        registry: Registry | None = None,
    ) -> None:  # fmt: skip
        self.report = Pruned()
        self.kept: list[Pair] = []
        """The accepted pairs that were not derivable when they were accepted."""
        self._scene, self._steps, self._most_macros = scene, steps, most_macros
        self._shapes = None if registry is None else Shapes(scene, registry)
        self._largest = 0
        self._waiting: list[_Candidate] = []
        self._proposed: dict[Pair, _Candidate] = {}
        self._offered: dict[Pair, None] = {}
        self._rejected: dict[Pair, None] = {}
        self._derived: list[_Candidate] = []
        self._true: dict[Pair, None] = {}
        """Accepted, or derived from what was."""
        self._accepted_keys: dict[Key, None] = {}
        self._macros: dict[Pair, None] = {}
        """Derived, and proposed all the same."""
        self._climbing: dict[Pair, None] = {}
        """Equal by what was accepted, when they were proposed, but not reached by it."""
        self._together = Derivation(self._graph(most_nodes), Book(), steps=steps)
        """All candidates' terms, under rules for one result that can be followed both ways."""
        self._complete = True
        """Whether all rules are in there."""
        self._usable = Book()
        """All rules, in the directions in which they are used."""

    def _graph(self, most_nodes: int, most_size: int = 1 << 30) -> EGraph:
        return EGraph(self._scene.templates, most_nodes=most_nodes, most_size=most_size, shaper=self._shapes)

    def offer(self, pairs: Iterable[Pair]) -> None:
        """Candidates to choose from; more may be offered later."""
        for pair in pairs:
            self.report.offered += 1
            found = canonical(pair, self._scene)
            if found in self._offered or found.left == found.right:
                self.report.renamed += 1
                continue
            self._offered[found] = None
            self._waiting.append(self._candidate(found))
            for term in (*found.left, *found.right):
                self._largest = max(self._largest, written((term,)))
                self._together.graph.add(term)
        self._waiting.sort(key=lambda c: c.order)
        self._together.graph.most_size = self._largest + SPARE
        self._together.run()

    def _candidate(self, pair: Pair) -> _Candidate:
        key = pattern_key(pair, self._scene)
        broader = dict.fromkeys(abstracted(pair, whole=whole) for whole in (False, True))
        general = dict.fromkeys(pattern_key(p, self._scene) for p in broader if p != pair)
        within = tuple(canonical(p, self._scene) for p in inside(pair))
        return _Candidate(pair, order(pair, self._scene), key, tuple(k for k in general if k != key), within)

    def widen(self, scene: Scene) -> None:
        """The scene has got further inputs."""
        self._scene = scene
        if self._shapes is not None:
            self._shapes.widen(scene)

    def next(self, count: int, *, macros: bool = True) -> list[Pair]:
        """The smallest candidates that do not follow from what was accepted: at most `count`, and all with equally many
        operators and leaves, so that smaller and more general ones are decided first.

        One is held back while a pair of which it is an instance, or which it puts into a context, is open. None is
        returned twice. When none is left, `macros` are. An empty list while nothing that was proposed is undecided
        means that all is done.
        """
        chosen: list[Pair] = []
        left: list[_Candidate] = []
        keys = dict.fromkeys(c.key for c in self._proposed.values())
        pairs = dict.fromkeys(self._proposed)
        for k, candidate in enumerate(self._waiting):
            if len(chosen) == count or (chosen and candidate.order[:5] != self._proposed[chosen[0]].order[:5]):
                left += self._waiting[k:]
                break
            if self._held_back(candidate, keys, pairs):
                left.append(candidate)
            elif self.derivable(candidate.pair):
                self._drop(candidate)
                continue
            else:
                chosen.append(candidate.pair)
                self._proposed[candidate.pair] = candidate
                if self._together.equal(candidate.pair):
                    self._climbing[candidate.pair] = None
            keys[candidate.key] = None
            pairs[candidate.pair] = None
        self._waiting = left
        if macros and not chosen and not left and not self._proposed:
            chosen = self._next_macros(count)
        return chosen

    def _held_back(self, candidate: _Candidate, keys: dict[Key, None], pairs: dict[Pair, None]) -> bool:
        if any(key in keys for key in (candidate.key, *candidate.general)):
            return True
        within = candidate.inside
        possible = within and all(p in self._offered and p not in self._rejected for p in within)
        return bool(possible) and any(p in pairs for p in within)

    def accept(self, pair: Pair, *, both: bool = True, known: bool = False) -> bool:
        """It is proved: from now on it is a rule, in both directions or only from left to right as it is spelled here.
        That its sides are equal is known either way; only rewriting, alone and past hills, keeps to the direction.

        One that is `known` is an instance of a rule that was found elsewhere. False, and no rule, if it has become
        derivable since it was proposed, by what was accepted meanwhile.
        """
        found = canonical(pair, self._scene)
        candidate = self._proposed.pop(found, None) or self._candidate(found)
        if found not in self._macros and self.derivable(found):
            self._drop(candidate)
            return False
        if known:
            self.report.instances += 1
        else:
            self.report.accepted += 1
            self.report.macros += self._is_macro(found)
            self.kept.append(pair)
        self._true[found] = None
        self._accepted_keys[candidate.key] = None
        self._learn(pair, both)
        return True

    def reject(self, pair: Pair) -> None:
        """It is refuted, or nothing is known: it is not proposed again, and nothing follows from it."""
        found = canonical(pair, self._scene)
        if found in self._proposed:
            del self._proposed[found]
        self._rejected[found] = None
        self.report.rejected += 1

    def is_macro(self, pair: Pair) -> bool:
        return self._is_macro(canonical(pair, self._scene))

    def _is_macro(self, found: Pair) -> bool:
        return found in self._macros or found in self._climbing

    def derivable(self, pair: Pair) -> bool:
        """Whether the rules lead where it leads; only for pairs that were offered.

        That its sides are known to be equal is not enough: rules are used in the directions that were accepted, which
        never lead to something costlier. What can only be reached by way of that is a law of its own.
        """
        if self._complete and not self._together.equal(pair):
            return False
        ends = ((pair.left, pair.right), (pair.right, pair.left))
        ways = [(old, new) for old, new in ends if set(leaves(*new)) <= set(leaves(*old))]
        down = [(old, new) for old, new in ways if self._expense(new) <= self._expense(old)]
        return bool(ways) and all(self._leads(old, new) for old, new in down or ways)

    def _expense(self, side: tuple[Term, ...]) -> tuple[int, int]:
        return cost(side, self._scene), size(*side)

    def _leads(self, old: tuple[Term, ...], new: tuple[Term, ...]) -> bool:
        graph = self._graph(MOST_NODES_ALONE, self._together.graph.most_size)
        for term in old:
            graph.add(term)
        alone = Derivation(graph, self._usable, steps=self._steps)
        alone.run()
        return alone.equal(Pair(old, new))

    def _learn(self, pair: Pair, both: bool) -> None:
        for way in directions(pair, self._shapes, both=both):
            self._usable.add(way)
        if len(pair.left) > 1 or set(leaves(*pair.left)) != set(leaves(*pair.right)):
            self._complete = False
        else:
            ways = list(directions(pair, self._shapes))
            for way in ways:
                self._together.book.add(way)
            self._together.learn(ways)

    def _drop(self, candidate: _Candidate) -> None:
        self._true[candidate.pair] = None
        self._derived.append(candidate)
        if candidate.inside and all(p in self._true for p in candidate.inside):
            self.report.context += 1
        elif any(key in self._accepted_keys for key in (candidate.key, *candidate.general)):
            self.report.instances += 1
        else:
            self.report.derivable += 1

    def _next_macros(self, count: int) -> list[Pair]:
        """Derived pairs that lead over a hill to something cheaper. Those found count as rules for the next ones."""
        if len(self._macros) >= self._most_macros or not self._derived:
            return []
        scene = self._scene
        gains = [(abs(cost(c.pair.left, scene) - cost(c.pair.right, scene)), c) for c in self._derived]
        gains = sorted(((g, c) for g, c in gains if g), key=lambda g: (-g[0], g[1].order))
        book = self._usable.copy()
        walker = Walker(scene, book, steps=self._steps, shaper=self._shapes)
        chosen: list[Pair] = []
        self._derived = []
        for k, (_, candidate) in enumerate(gains):
            if len(chosen) == count or len(self._macros) == self._most_macros:
                self._derived = [c for _, c in gains[k:]]
                break
            if walker.way(candidate.pair) == "hill":
                chosen.append(candidate.pair)
                self._macros[candidate.pair] = None
                self._proposed[candidate.pair] = candidate
                for way in directions(candidate.pair, self._shapes):
                    book.add(way)
        return chosen
