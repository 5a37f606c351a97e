"""Dead code: pure nodes and constants that nobody reads.

A rewrite takes along what it was the last to read, so only what was unread before any rewrite counts as one of its own.
"""

from __future__ import annotations

from dataclasses import replace

from superopt.ir.graph import Constant, Graph, Label, Node
from superopt.normalize.journal import place_of
from superopt.normalize.scope import Scope

NODE, CONSTANT = "dead-node", "dead-constant"


def idle(graph: Graph, scope: Scope) -> set[Node | Constant]:
    """Nodes and constants that nobody reads."""
    read = {v.producer for v, count in scope.uses.items() if count}
    return {producer for producer in (*graph.nodes, *graph.constants) if producer not in read}


def sweep(graph: Graph, scope: Scope, where: str, unread_before: set[Node | Constant]) -> Graph:
    """Drop what is unread; report what was so before. Readers are looked at before what they read."""
    journal = scope.context.journal
    read = {v.producer for v in graph.outputs}
    nodes: list[Node] = []
    for node in reversed(graph.nodes):
        if node not in read and scope.is_pure(node):
            place = place_of(node, graph.labels.get(node, Label()), where)
            if node not in unread_before:
                continue
            if journal.permits(NODE, place):
                journal.record(NODE, place, node.kind)
                continue
        nodes.append(node)
        read.update(v.producer for v in node.operands)
    listed = set(graph.input_names)
    constants: dict[Constant, str] = {}
    for constant, name in graph.constants.items():
        if constant not in read and name not in listed:
            if constant not in unread_before:
                continue
            if journal.permits(CONSTANT, f"{where}{name}"):
                journal.record(CONSTANT, f"{where}{name}", str(constant.tensor.type))
                continue
        constants[constant] = name
    if len(nodes) == len(graph.nodes) and len(constants) == len(graph.constants):
        return graph
    nodes.reverse()
    labels = {node: graph.labels[node] for node in nodes if node in graph.labels}
    return replace(graph, nodes=tuple(nodes), labels=labels, constants=constants)
