"""Rules at work on one model: find, apply, tell, and find again what was told."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from superopt.ir.graph import Node, Value
from superopt.ops.registry import Registry
from superopt.rewrite.below import Below
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.constants import WITHOUT_FORMULA, Constants
from superopt.rewrite.emit import Emitter, Vocabulary
from superopt.rewrite.found import Match
from superopt.rewrite.match import Matcher, Mismatch
from superopt.rewrite.pattern import Pattern, compile_pattern, first_operator
from superopt.rewrite.piece import Piece, new_nodes, rewritten
from superopt.rewrite.reading import Reader
from superopt.rewrite.rule import Rule
from superopt.rewrite.sizes import Sizes
from superopt.rewrite.skeleton import Bone, Skeletons, skeleton_of
from superopt.rewrite.synonyms import names_of, stands_for

DEPTHS = 3, 6
"""Patterns no deeper than this are looked for once at nodes that read alike down to there."""
DEEPER = 0


@dataclass(frozen=True)
class Step:
    """One rewrite: a rule at a place, told in names."""

    rule: str
    results: tuple[str, ...]
    """Names of the values computed again, in the order of the rule's results."""
    inputs: Mapping[str, str]
    """The rule's inputs by the names of the values they stand for; constants without a name are left out."""


@dataclass(frozen=True)
class Taken:
    """A step that was taken, with what is needed to take the same one elsewhere."""

    match: Match
    made: Mapping[str, Value]
    """What takes the place of each result."""
    before: Piece
    after: Piece
    moved: Mapping[Value, Value]

    @property
    def rule(self) -> Rule:
        return self.match.pattern.rule

    @property
    def fresh(self) -> frozenset[Node]:
        """The nodes that it made."""
        return frozenset(new_nodes(self.made.values(), self.before))

    def now(self, nodes: Iterable[Node]) -> frozenset[Node]:
        """What became of nodes that were there before: those behind what it made read something else."""
        moved = (self.moved.get(Value(node), Value(node)).node for node in nodes)
        return frozenset(node for node in moved if node is not None)

    @property
    def step(self) -> Step:
        called = self.before.called
        results = tuple(called.get(v, "") for v in self.match.results.values())
        inputs = {name: called[v] for name, v in self.match.inputs.items() if v in called}
        return Step(self.rule.name, results, inputs)


class Patterns(Mapping[str, Pattern]):
    """Rules by name as patterns, each compiled when it is asked for."""

    def __init__(self, registry: Registry) -> None:
        self.rules: dict[str, Rule] = {}
        self._registry = registry
        self._compiled: dict[str, Pattern] = {}

    def __getitem__(self, name: str) -> Pattern:
        if name not in self._compiled:
            self._compiled[name] = compile_pattern(self.rules[name], self._registry)
        return self._compiled[name]

    def __contains__(self, name: object) -> bool:
        return name in self.rules

    def __iter__(self) -> Iterator[str]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)


class Rules:
    """Compiled rules, by the operator that is looked for first."""

    def __init__(self, rules: Iterable[Rule], registry: Registry) -> None:
        self.patterns = Patterns(registry)
        self._by_skeleton: dict[tuple[str, str], dict[int, dict[Bone, list[tuple[int, Pattern]]]]] = {}
        self._waiting: dict[tuple[str, str], list[tuple[int, Rule]]] = {}
        self.late: list[str] = []
        """Those that nobody searches for: they are there by their names alone."""
        for rule in rules:
            self.add(rule)

    def add(self, rule: Rule) -> None:
        """One more; its name must be new."""
        self.patterns.rules[rule.name] = rule
        self._enter(len(self.patterns), self.patterns[rule.name])

    def add_late(self, rule: Rule) -> None:
        self.patterns.rules[rule.name] = rule
        self.late.append(rule.name)

    @property
    def searched(self) -> Iterator[Rule]:
        late = set(self.late)
        return (rule for name, rule in self.patterns.rules.items() if name not in late)

    def add_later(self, rules: Iterable[Rule]) -> None:
        """Rules that are known to compile. That is done once a node is met that one of them may begin with: a model
        has few of the operators that there are rules for."""
        for rule in rules:
            self.patterns.rules[rule.name] = rule
            first = first_operator(rule)
            if first is None:
                self._enter(len(self.patterns), self.patterns[rule.name])
            else:
                self._waiting.setdefault(first, []).append((len(self.patterns), rule))

    def _enter(self, place: int, pattern: Pattern) -> None:
        if pattern.roots:
            call, bone = pattern.anchor.call, skeleton_of(pattern)
            depth = next((depth for depth in DEPTHS if bone.depth <= depth), DEEPER)
            alike = self._by_skeleton.setdefault((call.domain, call.op), {}).setdefault(depth, {})
            alike.setdefault(bone, []).append((place, pattern))

    def __len__(self) -> int:
        """Those that are searched for."""
        return len(self.patterns) - len(self.late)

    def starting_at(self, node: Node, skeletons: Skeletons, depth: int) -> list[tuple[int, Pattern]]:
        """Those whose operators are there, of those up to one of the depths; each with its place among all."""
        names = names_of(node)
        for name in names:
            for place, rule in self._waiting.pop(name, ()):
                self._enter(place, self.patterns[rule.name])
        alike = [item for name in names for item in self._by_skeleton.get(name, {}).get(depth, {}).items()]
        return [entry for bone, entries in alike if skeletons.fits(bone, node) for entry in entries]


class Rewriter:
    """What all searches on one model share: its opset, its constants, what may be emitted."""

    def __init__(
        self,
        registry: Registry,
        opset: int,
        vocabulary: Vocabulary,
        own: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        """`own` are the operators that the model defines itself: they may mean anything."""
        self.constants, self.sizes = Constants(self._is_function), Sizes()
        self.reader = Reader(registry, opset, self.constants, self.sizes, own)
        self.matcher = Matcher(registry, self.reader, self.constants, self.sizes)
        self.emitter = Emitter(registry, self.reader, self.constants, self.sizes, vocabulary)
        self._alone: dict[tuple[str, Node], list[tuple[Match, Mapping[str, Value]]]] = {}
        self._made: dict[tuple[object, ...], Mapping[str, Value] | str] = {}
        self._skeletons = Skeletons(self.reader, self.constants)
        self._below = Below(self.constants)
        self._fitting: dict[Node, list[Pattern]] = {}
        self._fitting_below: dict[tuple[object, ...], list[tuple[int, Pattern]]] = {}
        self._fitting_of: tuple[Rules | None, int] = (None, 0)

    def _is_function(self, node: Node) -> bool:
        if (node.domain, node.op) in self.reader.own:
            return False
        return (node.op in WITHOUT_FORMULA and not node.domain) or self.reader.registry.find(
            node.op, node.domain
        ) is not None

    def runs(self, node: Node) -> bool:
        """Whether a node does work at run time, and is not computed at export."""
        return not self.constants.is_weight(Value(node))

    def moves(self, rules: Rules, node: Node, piece: Piece) -> Iterator[tuple[Match, Mapping[str, Value]]]:
        """All matches of all rules at a node, but for those that would replace an output which nobody reads: it has no
        name under which the step could be told."""
        if self._fitting_of != (rules, len(rules)):
            self._fitting_of, self._fitting, self._fitting_below = (rules, len(rules)), {}, {}
        if node not in self._fitting:
            fitting = [entry for depth in (*DEPTHS, DEEPER) for entry in self._fitting_at(rules, node, piece, depth)]
            self._fitting[node] = [pattern for _, pattern in sorted(fitting, key=lambda entry: entry[0])]
        for pattern in self._fitting[node]:
            for match, made in self.matches(pattern, node, piece):
                if all(value in piece.called for value in match.results.values()):
                    yield match, made

    def _fitting_at(self, rules: Rules, node: Node, piece: Piece, depth: int) -> list[tuple[int, Pattern]]:
        key = () if depth == DEEPER else (depth, *self._below(node, depth))
        found = self._fitting_below.get(key) if key else None
        if found is None:
            fitting = rules.starting_at(node, self._skeletons, depth)
            found = [(place, pattern) for place, pattern in fitting if self._may_match(pattern, node, piece)]
            if key:
                self._fitting_below[key] = found
        return found

    def _may_match(self, pattern: Pattern, node: Node, piece: Piece) -> bool:
        """Here or in another piece that has the node."""
        if len(pattern.roots) > 1:
            return any(True for _ in self.matcher.begun(pattern, node))
        return bool(self.matches(pattern, node, piece))

    def matches(self, pattern: Pattern, node: Node, piece: Piece) -> list[tuple[Match, Mapping[str, Value]]]:
        """Matches that can be emitted, with what takes the place of their results.

        A node is hash-consed with all that it reads: what a pattern with one root finds at it never changes.
        """
        if len(pattern.roots) > 1:
            return list(self._emitted(pattern, node, piece))
        key = (pattern.rule.name, node)
        if key not in self._alone:
            self._alone[key] = list(self._emitted(pattern, node, piece))
        return self._alone[key]

    def _emitted(
        self, pattern: Pattern, node: Node, piece: Piece, *, any_order: bool = False
    ) -> Iterator[tuple[Match, Mapping[str, Value]]]:
        for match in self.matcher.matches(pattern, node, piece, any_order=any_order):
            made = self._emit(match)
            if isinstance(made, str) or all(made[name] == old for name, old in match.results.items()):
                continue
            if not _adds_to_itself(match, made):
                yield match, made

    def _emit(self, match: Match) -> Mapping[str, Value] | str:
        key = (match.pattern.rule.name, match.nodes, tuple(match.inputs.items()))
        if key not in self._made:
            try:
                self._made[key] = self.emitter.emit(match)
            except Conflict as conflict:
                self._made[key] = str(conflict)
        return self._made[key]

    def take(self, piece: Piece, match: Match, made: Mapping[str, Value], taken: Container[str] = frozenset()) -> Taken:
        replaced = {old: made[name] for name, old in match.results.items()}
        after = rewritten(piece, replaced, match.pattern.rule.name, taken)
        return Taken(match, made, piece, after.piece, after.moved)

    def find(self, piece: Piece, pattern: Pattern, step: Step) -> tuple[Match, Mapping[str, Value]] | str:
        """The match that a step tells of, or why there is none."""
        values = [piece.names.get(name) for name in step.results]
        if None in values or len(values) != len(pattern.results):
            missing = [name for name in step.results if name not in piece.names]
            return f"there is no value {', '.join(missing)}" if missing else "another number of results"
        anchors = self._anchors(piece, pattern, values)
        for node in anchors:
            alone = len(pattern.roots) < 2
            found = self.matches(pattern, node, piece) if alone else self._emitted(pattern, node, piece, any_order=True)
            for match, made in found:
                same = list(match.results.values()) == values and all(
                    piece.names.get(step.inputs[name]) == value
                    for name, value in match.inputs.items()
                    if name in step.inputs
                )
                if same:
                    return match, made
        return f"{pattern.rule.name} does not match at {', '.join(step.results)}"

    def _anchors(self, piece: Piece, pattern: Pattern, values: list[Value | None]) -> list[Node]:
        """Nodes where the pattern's first root may be: those of its operator."""
        call = pattern.anchor.call
        made = [v.node for v in values if v is not None and v.node is not None]
        first = [n for n in made if stands_for(n, call.op, call.domain)]
        others = [n for n in piece.nodes if stands_for(n, call.op, call.domain) and n not in first]
        return [*first, *others]

    def why_not(self, pattern: Pattern, node: Node, piece: Piece) -> Mismatch:
        """Why a rule is not applied at a node: the attempt that went furthest."""
        found, reasons = self.attempts(pattern, node, piece)
        if found:
            return Mismatch("it matches", len(found[0].nodes) + len(found[0].inputs))
        return max(reasons, key=lambda r: r.depth, default=Mismatch("another operator"))

    def attempts(self, pattern: Pattern, node: Node, piece: Piece) -> tuple[list[Match], list[Mismatch]]:
        """The matches at a node that can be made, and why all others are none."""
        found: list[Match] = []
        self.matcher.reasons = reasons = []
        try:
            for match in self.matcher.matches(pattern, node, piece):
                made, depth = self._emit(match), len(match.nodes) + len(match.inputs)
                if isinstance(made, str):
                    reasons.append(Mismatch(made, depth, match.nodes))
                elif all(made[name] == old for name, old in match.results.items()):
                    reasons.append(Mismatch("it gives what is there already", depth, match.nodes))
                else:
                    found.append(match)
        finally:
            self.matcher.reasons = None
        return found, reasons


def _adds_to_itself(match: Match, made: Mapping[str, Value]) -> bool:
    """Whether what takes a result's place is computed from that very result, as where y becomes Pad(y) with a border of
    none: it only adds work, and the result would have to be there under two names."""
    replaced = {old for name, old in match.results.items() if made[name] != old}
    given = set(match.inputs.values())
    waiting, seen = [made[name] for name, old in match.results.items() if made[name] != old], set[Value]()
    while waiting:
        value = waiting.pop()
        if value in replaced:
            return True
        if value not in given and value not in seen and value.node is not None:
            seen.add(value)
            waiting += value.node.operands
    return False
