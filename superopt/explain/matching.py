"""Which node of one graph is which of the other.

The surest evidence first: equal computation from the inputs on; then the same name; then the same weights; then the
same operator between nodes that are matched already; then a neighbourhood that occurs once in each graph. What is left
has no partner.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping

from superopt.explain.view import Key, View, attribute_key, is_literal
from superopt.ir.graph import Label, Node, Parameter, Value

LARGE = 32
"""Elements of a constant that two nodes do not share by chance."""

ROUNDS = 3
"""How many steps away a neighbourhood is looked at."""


class Matching:
    """Partners in both directions. Everything is deterministic: order is that of the graphs."""

    def __init__(self, before: View, after: View) -> None:
        self.before, self.after = before, after
        self.forth: dict[Node, Node] = {}
        self.back: dict[Node, Node] = {}
        self._attributes: dict[Node, Key] = {}

    def same(self, a: Value | None, b: Value | None) -> bool:
        """Whether two operands are one value: by what makes them, or, where that was replaced, by their name."""
        if a is None or b is None:
            return a is b
        if a.constant is not None and b.constant is not None:
            return a.constant.digest == b.constant.digest
        if isinstance(a.producer, Parameter) or isinstance(b.producer, Parameter):
            return _input_key(self.before, a) == _input_key(self.after, b)
        if a.node is not None and b.node is not None and a.node in self.forth and b.node in self.back:
            return a.index == b.index and self.forth[a.node] is b.node
        name = self.before.own_names.get(a)
        return name is not None and name == self.after.own_names.get(b)

    def find(self) -> None:
        self._by_computation()
        self._by_name(lambda view, node: view.own_names.get(node.outputs[0]) if node.outputs else None)
        self._by_name(lambda view, node: view.graph.labels.get(node, Label()).name)
        self._by_weights()
        self._spread(self._alike)
        self._by_neighbourhood()
        self._spread(self._alike)
        self._spread(lambda a, b: a.kind == b.kind)

    def _pair(self, a: Node, b: Node) -> None:
        self.forth[a], self.back[b] = b, a

    def _free(self) -> tuple[list[Node], list[Node]]:
        left = [node for node in self.before.nodes if node not in self.forth]
        return left, [node for node in self.after.nodes if node not in self.back]

    def _key(self, node: Node) -> Key:
        if node not in self._attributes:
            self._attributes[node] = attribute_key(node)
        return self._attributes[node]

    def _alike(self, a: Node, b: Node) -> bool:
        return a.kind == b.kind and self._key(a) == self._key(b)

    def _by_computation(self) -> None:
        """Nodes that compute the same from the same inputs; of several, those with one name first, then in order."""
        numbers: dict[Key, int] = {}
        groups: dict[int, tuple[list[Node], list[Node]]] = defaultdict(lambda: ([], []))
        for side, view in enumerate((self.before, self.after)):
            known: dict[Node, int] = {}
            for node in view.nodes:
                operands = tuple(_value_key(view, v, known) for v in (*node.inputs, None, *node.captured))
                bodies = tuple(body.digest for body in node.bodies)
                key = (node.kind, len(node.types), self._key(node), operands, bodies)
                known[node] = numbers.setdefault(key, len(numbers))
                groups[known[node]][side].append(node)
        for left, right in groups.values():
            for a, b in _best_pairs(self.before, left, self.after, right):
                self._pair(a, b)

    def _by_name(self, name: Callable[[View, Node], str | None]) -> None:
        left, right = self._free()
        named = _unique((name(self.after, node), node) for node in right)
        for key, a in _unique((name(self.before, node), node) for node in left).items():
            b = named.get(key)
            if b is not None and a.kind == b.kind:
                self._pair(a, b)

    def _by_weights(self) -> None:
        """Nodes that read the same large constants, where no others of their kind do."""
        left, right = self._free()
        once = _unique((_weights_key(node), node) for node in right)
        for key, a in _unique((_weights_key(node), node) for node in left).items():
            if key in once:
                self._pair(a, once[key])

    def _by_neighbourhood(self) -> None:
        """Rounds of colouring: a node's colour and those of all around it give its next colour."""
        numbers: dict[Key, int] = {}
        colours: dict[tuple[int, Node], int] = {}
        views = (self.before, self.after)
        for side, view in enumerate(views):
            for node in view.nodes:
                partner = node if side == 0 else self.back.get(node)
                fixed = id(partner) if partner in self.forth else None
                colours[side, node] = numbers.setdefault((fixed, node.kind, self._key(node)), len(numbers))
        for _ in range(ROUNDS):
            colours = {
                (side, node): numbers.setdefault(_surroundings(view, side, node, colours), len(numbers))
                for side, view in enumerate(views)
                for node in view.nodes
            }
        left, right = self._free()
        once = _unique((colours[1, node], node) for node in right)
        for colour, a in _unique((colours[0, node], node) for node in left).items():
            if colour in once:
                self._pair(a, once[colour])

    def _spread(self, fits: Callable[[Node, Node], bool]) -> None:
        """From partners to their operands, slot by slot, and to their readers, where only one of a kind is free."""
        waiting = deque(self.forth.items())

        def pair(a: Node | None, b: Node | None) -> None:
            if a is None or b is None or a in self.forth or b in self.back or is_literal(a) or is_literal(b):
                return
            if fits(a, b):
                self._pair(a, b)
                waiting.append((a, b))

        for key, value in self.before.results.items():
            if key in self.after.results:
                pair(value.node, self.after.results[key].node)
        sources = {key: Value(parameter) for parameter, key in self.after.inputs.items()}
        for parameter, key in self.before.inputs.items():
            if key in sources:
                for a, b in self._readers(Value(parameter), sources[key]):
                    pair(a, b)
        while waiting:
            a, b = waiting.popleft()
            if len(a.inputs) == len(b.inputs):
                for x, y in zip(a.inputs, b.inputs, strict=True):
                    if x is not None and y is not None and x.index == y.index:
                        pair(x.node, y.node)
            for x, y in zip(a.outputs, b.outputs, strict=False):
                for reader, other in self._readers(x, y):
                    pair(reader, other)

    def _readers(self, a: Value, b: Value) -> list[tuple[Node, Node]]:
        left = _unique(((n.kind, slot), n) for n, slot in self.before.readers.get(a, ()) if n not in self.forth)
        right = _unique(((n.kind, slot), n) for n, slot in self.after.readers.get(b, ()) if n not in self.back)
        return [(node, right[key]) for key, node in left.items() if key in right]


def match(before: View, after: View) -> Matching:
    matching = Matching(before, after)
    matching.find()
    return matching


def _input_key(view: View, value: Value) -> Key:
    return view.inputs.get(value.producer) if isinstance(value.producer, Parameter) else object()


def _value_key(view: View, value: Value | None, known: Mapping[Node, int]) -> Key:
    if value is None:
        return None
    tensor = value.constant
    if tensor is not None:
        return tensor.digest
    if isinstance(value.producer, Node):
        return (known[value.producer], value.index)
    return ("input", _input_key(view, value))


def _weights_key(node: Node) -> Key:
    """In no order: exporters do not agree on which operand of an Add is the bias."""
    tensors = [value.constant for value in node.inputs if value is not None and value.constant is not None]
    large = tuple(sorted(tensor.digest for tensor in tensors if tensor.count >= LARGE))
    return (node.kind, large) if large else None


def _surroundings(view: View, side: int, node: Node, colours: Mapping[tuple[int, Node], int]) -> Key:
    """Constants count by their type alone: weights may differ."""

    def colour(value: Value | None) -> Key:
        if value is None:
            return None
        if isinstance(value.producer, Node) and value.constant is None:
            return (colours[side, value.producer], value.index)
        return str(value.type) if value.constant is not None else _input_key(view, value)

    readers = sorted(
        (value.index, slot, colours[side, reader])
        for value in node.outputs
        for reader, slot in view.readers.get(value, ())
    )
    return (colours[side, node], tuple(map(colour, node.inputs)), tuple(map(colour, node.captured)), tuple(readers))


def _best_pairs(before: View, left: list[Node], after: View, right: list[Node]) -> Iterable[tuple[Node, Node]]:
    if len(left) == len(right) == 1:
        return [(left[0], right[0])]
    named = _unique((after.name(node), node) for node in right)
    pairs = {
        a: b for name, a in _unique((before.name(n), n) for n in left).items() if (b := named.get(name)) is not None
    }
    taken = set(pairs.values())
    rest = zip((n for n in left if n not in pairs), (n for n in right if n not in taken), strict=False)
    return [*pairs.items(), *rest]


def _unique(pairs: Iterable[tuple[Key, Node]]) -> dict[Key, Node]:
    """By key, what has a key of its own; an empty key is none."""
    found: dict[Key, Node | None] = {}
    for key, node in pairs:
        if key is not None and key != "":
            found[key] = None if key in found else node
    return {key: node for key, node in found.items() if node is not None}
