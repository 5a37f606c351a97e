"""From graphs to pieces and back: names and order of the file where they still mean the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from superopt.ir.graph import Constant, Graph, Label, Node, Value, make_node
from superopt.ir.tensor import Tensor
from superopt.rewrite.constants import Constants
from superopt.rewrite.piece import Piece, Tag

RULE_KEY = "superopt.rule"
"""Under this name a node's metadata says which rule made it."""

Combine = Callable[[list[Value]], Mapping[Value, Tensor]]


def piece_of(graph: Graph, constants: Constants) -> Piece:
    """All that the graph computes: its outputs, and nodes that nobody reads."""
    read = Counter(v for node in graph.nodes for v in node.operands)
    read.update(graph.outputs)
    unread = [
        Value(n) for n in graph.nodes if not any(read[v] for v in n.outputs) and not constants.is_weight(Value(n))
    ]
    tags: dict[Node, Tag] = {}
    names: dict[str, Value] = {}
    for name, parameter in zip(graph.input_names, graph.inputs, strict=True):
        names[name] = Value(parameter)
    for constant, name in graph.constants.items():
        names.setdefault(name, Value(constant))
    for k, node in enumerate(graph.nodes):
        label = graph.labels.get(node, Label())
        if not constants.is_weight(Value(node)):
            tags[node] = Tag(label.outputs, k, origin=label)
            for value in node.operands:
                if constants.is_weight(value):
                    constants.meet(value)
        for name, value in zip(label.outputs, node.outputs, strict=False):
            if name:
                names.setdefault(name, value)
    own = frozenset(node for node in graph.nodes if constants.is_weight(Value(node)))
    return Piece((*graph.outputs, *unread), tags, names, constants, own)


def graph_of(piece: Piece, graph: Graph, combine: Combine, initializers: bool, digests: Mapping[str, str]) -> Graph:
    """The graph with what the piece computes in place of what it did; weights are combined."""
    wanted = combined_weights(piece)
    tensors = combine(wanted)
    taken = set(graph.constants.values())
    moved: dict[Value, Value] = {}
    added: dict[Constant, str] = {}
    labels: dict[Node, Label] = {}
    for value in wanted:
        name = _free(piece.called.get(value) or f"{_first_reader(piece, value)}.weight", taken)
        constant = Constant(tensors[value])
        if initializers:
            added[constant], moved[value] = name, Value(constant)
        else:  # before IR version 4 an initializer had to be an input as well
            node = make_node("Constant", (), {"value": constant.tensor}, (constant.tensor.type,))
            labels[node], moved[value] = Label(name, (name,)), Value(node)
    for node in _own_weights(piece, graph):
        labels[node] = graph.labels[node]
    for node in piece.nodes:
        new = _on(node, moved)
        labels[new] = _named(piece, node, digests)
        moved.update((a, b) for a, b in zip(node.outputs, new.outputs, strict=True) if a not in moved and a != b)
    nodes = tuple(labels)
    outputs = tuple(moved.get(v, v) for v in piece.results[: len(graph.outputs)])
    used = {v.producer for node in nodes for v in node.operands} | {v.producer for v in outputs}
    read_before = {v.producer for node in graph.nodes for v in node.operands}
    own = {c: n for c, n in graph.constants.items() if c in used or c not in read_before}
    numbers = _unnamed(nodes, {**own, **added}, taken)
    return replace(graph, outputs=outputs, nodes=nodes, labels=labels, constants={**own, **added, **numbers})


def combined_weights(piece: Piece) -> list[Value]:
    """Weights that rewrites put together and that something at run time reads."""
    found: dict[Value, None] = {}
    read = [v for node in piece.nodes for v in node.operands]
    for value in (*read, *piece.results):
        if value.node is not None and value.node not in piece.own and piece.constants.is_weight(value):
            found[value] = None
    return list(found)


def _own_weights(piece: Piece, graph: Graph) -> list[Node]:
    """Nodes of the file that depend on constants alone and that nobody folded."""
    read = {v.producer for node in piece.nodes for v in node.operands} | {v.producer for v in piece.results}
    needed: set[object] = set(read)
    found: list[Node] = []
    for node in reversed(graph.nodes):
        if node in needed and piece.constants.is_weight(Value(node)):
            found.append(node)
            needed.update(v.producer for v in node.operands)
    return found[::-1]


def _first_reader(piece: Piece, value: Value) -> str:
    users = piece.reading(value)
    return piece.tags[users[0]].outputs[0] if users else "value"


def weights_read(piece: Piece) -> dict[Value, None]:
    """What the piece's nodes read that is known before it runs."""
    return {v: None for node in piece.members for v in node.operands if piece.constants.is_weight(v)}


def _named(piece: Piece, node: Node, digests: Mapping[str, str]) -> Label:
    tag = piece.tags[node]
    if not tag.rule and isinstance(tag.origin, Label):
        return tag.origin
    made = f"{tag.rule} {digests.get(tag.rule, '')}".strip()
    return Label("", tag.outputs, metadata=((RULE_KEY, made),))


def _on(node: Node, moved: Mapping[Value, Value]) -> Node:
    if not any(v in moved for v in node.operands):
        return node
    return make_node(
        node.op, (v and moved.get(v, v) for v in node.inputs), node.attributes, node.types, domain=node.domain,
        captured=(moved.get(v, v) for v in node.captured), instance=node.instance,
    )  # fmt: skip


def _unnamed(nodes: Iterable[Node], named: Mapping[Constant, str], taken: set[str]) -> dict[Constant, str]:
    """Names for the numbers and lists that rewrites brought along."""
    found: dict[Constant, str] = {}
    for node in nodes:
        for value in node.operands:
            producer = value.producer
            if isinstance(producer, Constant) and producer not in named and producer not in found:
                found[producer] = _free(f"{node.op.lower()}_constant", taken)
    return found


def _free(base: str, taken: set[str]) -> str:
    name, count = base, 1
    while name in taken:
        count += 1
        name = f"{base}_{count}"
    taken.add(name)
    return name
