"""Equal initializers become one. Content is read only where types are equal, and hashed only where samples are."""

from __future__ import annotations

from collections import defaultdict

from superopt.ir.graph import Constant, Graph, Node, Value
from superopt.ir.tensor import Tensor
from superopt.normalize.builder import substitute
from superopt.normalize.scope import Scope

NAME = "share-constants"
_SAMPLE = 1024


def share_constants(graph: Graph, scope: Scope, where: str) -> tuple[Graph, dict[Node, Node]]:
    """The graph reading the first of each set of equal initializers, and where its nodes went."""
    journal = scope.context.journal
    outputs = set(graph.outputs)
    listed = set(graph.input_names)
    alike: dict[object, list[Constant]] = defaultdict(list)
    for constant in graph.constants:
        if constant.tensor.readable and scope.uses[Value(constant)]:
            alike[constant.tensor.dtype, constant.tensor.shape].append(constant)
    merged: dict[Value, Value] = {}
    for constants in _equal([group for group in alike.values() if len(group) > 1]):
        first = constants[0]
        for constant in constants[1:]:
            value, name = Value(constant), graph.constants[constant]
            if value in outputs or name in listed or not journal.permits(NAME, f"{where}{name}"):
                continue
            journal.record(NAME, f"{where}{name}", f"same as {graph.constants[first]}")
            merged[value] = Value(first)
    return substitute(graph, merged) if merged else (graph, {})


def _equal(groups: list[list[Constant]]) -> list[list[Constant]]:
    """Groups of one type and shape, split until each holds one content; single ones left out."""
    for key in (sample, _digest):
        finer: list[list[Constant]] = []
        for group in groups:
            split: dict[object, list[Constant]] = defaultdict(list)
            for constant in group:
                split[key(constant.tensor)].append(constant)
            finer.extend(part for part in split.values() if len(part) > 1)
        groups = finer
    return groups


def sample(tensor: Tensor) -> bytes:
    """The first bytes of a tensor: different samples, different tensors."""
    return bytes(next(iter(tensor.chunks()), b"")[:_SAMPLE])


def _digest(tensor: Tensor) -> str:
    return tensor.digest
