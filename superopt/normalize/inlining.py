"""A branch in the place of its If: what must hold for that, and how its nodes are called in the graph around it."""

from __future__ import annotations

from collections.abc import Iterator

from superopt.ir.graph import Graph, Label, Node, Value
from superopt.normalize.scope import Context

KNOWN = "if-known"


def branch_of(choice: Node, name: str, context: Context, node_names: set[str]) -> Graph | None:
    """The branch of an If, where it can be taken out of it.

    A node that must be called differently outside loses the file's record of it. One that is not ONNX's own keeps that,
    so the branch stays where it is.
    """
    branch = choice.attribute(name)
    if not isinstance(branch, Graph) or branch.inputs or len(branch.outputs) != len(choice.types):
        return None
    if context.model.ir_version < 4 and not all(constant.tensor.readable for constant in branch.constants):
        return None
    for node in branch.nodes:
        if not context.purity.is_known(node) and branch.labels.get(node, Label()).name in node_names - {""}:
            return None
    return branch


def result_names(branch: Graph, label: Label) -> dict[Value, str]:
    """Values made in the branch that take the names of the If's outputs."""
    names: dict[Value, str] = {}
    for value, name in zip(branch.outputs, label.outputs, strict=False):
        if name and value.node is not None:
            names.setdefault(value, name)
    return names


def relabel(label: Label, outputs: tuple[str, ...], node_names: set[str], context: Context) -> Label:
    """The label of a node taken out of its branch; no two nodes of one graph may have one name."""
    name = label.name
    while name and name in node_names:
        name = context.fresh(f"{label.name}_outside")
    node_names.add(name)
    return Label(name, outputs, label.origin if name == label.name else None, label.metadata)


def names_in(*graphs: Graph) -> Iterator[str]:
    """Names of values, those of each graph once, bodies included."""
    for graph in graphs:
        own = {*graph.input_names, *graph.output_names, *graph.constants.values()}
        for label in graph.labels.values():
            own.update(label.outputs)
        yield from own - {""}
        for node in graph.nodes:
            yield from names_in(*node.bodies)
