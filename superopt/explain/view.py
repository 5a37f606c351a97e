"""One of two graphs as the comparison sees it."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from superopt.ir.graph import Graph, Label, Node, Opaque, Parameter, Value
from superopt.ir.tensor import Tensor
from superopt.ir.text import format_name, format_nodes, format_tensor, value_names

Key = Hashable

SMALL = 8
"""Elements of a constant that is written out."""


@dataclass(frozen=True, eq=False)
class View:
    """A graph with its names, and with a key for each input: what has the same key in both graphs is the same input.

    A Constant node that holds a tensor counts as a constant, not as a node: whether a file keeps a number in the one
    way or the other is no difference of structure.
    """

    graph: Graph
    inputs: Mapping[Parameter, Key]
    outer: Mapping[int, str]
    """Names of captured values, by position."""
    body: bool = False

    @cached_property
    def results(self) -> Mapping[Key, Value]:
        """By name; those of a body by position, which is all that its node knows of them."""
        keys = range(len(self.graph.outputs)) if self.body else self.graph.output_names
        return dict(zip(keys, self.graph.outputs, strict=True))

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(node for node in self.graph.nodes if not is_literal(node))

    @cached_property
    def names(self) -> Mapping[Value, str]:
        """For printing: every value has one."""
        return value_names(self.graph, self.outer)

    @cached_property
    def own_names(self) -> Mapping[Value, str]:
        """For matching: only names that the file gives."""
        return {
            value: name
            for node, label in self.graph.labels.items()
            for value, name in zip(node.outputs, label.outputs, strict=False)
            if name
        } | {Value(constant): name for constant, name in self.graph.constants.items() if name}

    @cached_property
    def lines(self) -> Mapping[Node, str]:
        return format_nodes(self.graph, self.outer)

    @cached_property
    def readers(self) -> Mapping[Value, list[tuple[Node, int]]]:
        """Who reads a value, and as which of its operands; captured ones count after the inputs."""
        found: dict[Value, list[tuple[Node, int]]] = defaultdict(list)
        for node in self.nodes:
            for slot, value in enumerate((*node.inputs, *node.captured)):
                if value is not None:
                    found[value].append((node, slot))
        return found

    def name(self, node: Node) -> str:
        """How people call the node: by its own name, or by its operator and first output."""
        label = self.graph.labels.get(node, Label())
        return label.name or f"{node.kind}:{next((name for name in label.outputs if name), '')}"

    def constant_lines(self, nodes: Iterable[Node]) -> list[str]:
        """Definitions of the constants that the nodes read, each once; large ones by digest."""
        tensors: dict[Value, Tensor] = {}
        for node in nodes:
            tensors |= {value: value.constant for value in node.operands if value.constant is not None}
        return [self.constant_line(value, tensor) for value, tensor in tensors.items()]

    def constant_line(self, value: Value, tensor: Tensor) -> str:
        shown = format_tensor(tensor) if tensor.count <= SMALL else f"{tensor.type} #{tensor.digest[:12]}"
        return f"{format_name(self.names[value])} = {shown}"


def is_literal(node: Node) -> bool:
    return node.op == "Constant" and not node.domain and isinstance(node.attribute("value"), Tensor)


def attribute_key(node: Node) -> Key:
    """Equal for nodes with equal attributes, whatever the bodies among them hold."""
    return tuple((name, _exact(value)) for name, value in node.attributes)


def _exact(value: object) -> Key:
    """Tells 1 from 1.0 and 0.0 from −0.0, finds NaN equal to itself, and knows tensors by content."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, tuple):
        return tuple(_exact(v) for v in value)
    if isinstance(value, Tensor):
        return ("tensor", value.digest)
    if isinstance(value, Graph):
        return "graph"
    if isinstance(value, Opaque):
        return ("opaque", value.data)
    return (type(value).__name__, value)
