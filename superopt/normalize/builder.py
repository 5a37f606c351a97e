"""A graph under construction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from superopt.ir.graph import Constant, Graph, Label, Node, Parameter, Value, make_node, replace_inputs


class Builder:
    """Nodes are added in order. Equal nodes stay apart: who wants to merge two adds only one of them."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: dict[Node, None] = {}
        self.labels: dict[Node, Label] = {}
        self.constants: dict[Constant, str] = dict(graph.constants)
        self._copies: Counter[Node] = Counter()
        self._parameters = {
            **{Value(p): f"capture {p.position}" for p in graph.captures},
            **{Value(p): name for p, name in zip(graph.inputs, graph.input_names, strict=True)},
        }

    def emit(self, node: Node, label: Label) -> Node:
        """Add a node. One that became equal to another without being merged with it gets an instance of its own."""
        if node in self.nodes:
            first = with_instance(node, 0)
            while node in self.nodes:
                self._copies[first] += 1
                node = with_instance(node, self._copies[first])
        self.nodes[node] = None
        self.labels[node] = label
        return node

    def describe(self, value: Value) -> str:
        """A value's name, for reports."""
        if isinstance(value.producer, Constant):
            return self.constants.get(value.producer, "")
        if isinstance(value.producer, Node):
            outputs = self.labels[value.producer].outputs
            return outputs[value.index] if value.index < len(outputs) else value.producer.kind
        return self._parameters.get(value, "")


def with_instance(node: Node, instance: int) -> Node:
    if node.instance == instance:
        return node
    return make_node(
        node.op,
        node.inputs,
        node.attributes,
        node.types,
        domain=node.domain,
        captured=node.captured,
        instance=instance,
    )


def presence(node: Node, label: Label) -> tuple[bool, ...]:
    """Which outputs exist: the file leaves the name of one that it does not want empty."""
    named = [bool(name) for name in label.outputs]
    return (*named, *([True] * (len(node.types) - len(named))))


Refine = Callable[[Node, Node, tuple[bool, ...]], Node]
"""A node before, the same on other operands, which outputs it has: the latter with what else is known of it now."""


def substitute(
    graph: Graph,
    values: Mapping[Value, Value],
    captures: tuple[Parameter, ...] | None = None,
    refine: Refine = lambda before, after, present: after,
) -> tuple[Graph, dict[Node, Node]]:
    """The same graph reading other values, and where its nodes went."""
    builder = Builder(graph)
    moved = dict(values)
    nodes: dict[Node, Node] = {}
    for node in graph.nodes:
        inputs = tuple(None if v is None else moved.get(v, v) for v in node.inputs)
        captured = tuple(moved.get(v, v) for v in node.captured)
        label = graph.labels.get(node, Label())
        new = builder.emit(refine(node, replace_inputs(node, inputs, captured), presence(node, label)), label)
        if new is not node:
            nodes[node] = new
            moved.update(zip(node.outputs, new.outputs, strict=True))
    changed = replace(
        graph,
        outputs=tuple(moved.get(v, v) for v in graph.outputs),
        nodes=tuple(builder.nodes),
        labels=builder.labels,
        captures=graph.captures if captures is None else captures,
    )
    return changed, nodes
