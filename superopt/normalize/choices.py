"""Ifs whose condition is known: a constant, computed from constants, or from types alone.

An If whose branch takes its place leaves no condition for onnxruntime to see through: what follows is typed by us, the
way onnxruntime does it, and the nodes that decided go with the If. Of an If that stays they are not folded
(`folding.deciding`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from superopt.ir.graph import Graph, Node, Value
from superopt.ir.tensor import Tensor
from superopt.ir.types import DType
from superopt.normalize.folding import asked, deciding, foresee
from superopt.normalize.ranks import Demands, measured, possible, settled
from superopt.normalize.scope import Scope


@dataclass(frozen=True)
class Choice:
    """The branch that an If takes, and why."""

    branch: str
    why: str


@dataclass(frozen=True)
class Choices:
    taken: Mapping[Node, Choice] = field(default_factory=dict[Node, Choice])
    tensors: Mapping[Value, Tensor] = field(default_factory=dict[Value, Tensor])
    """Values that decide an If here or further in, as far as they are known."""


def choose(graph: Graph, scope: Scope, foreseen: Mapping[Value, Tensor]) -> Choices:
    """The Ifs of a graph that are decided; `foreseen` is what is known of its captures besides constants."""
    wanted = {value for node in graph.nodes if node.bodies for value in asked(node)}
    if not wanted:
        return Choices()
    sees = Scope(scope.context, graph, {**scope.known, **foreseen}, scope.uses)
    decisive = deciding(graph)
    nodes = [node for node in graph.nodes if node in decisive]
    tensors = {v: tensor for v in wanted if (tensor := sees.tensor(v)) is not None}
    tensors |= foresee(graph, sees, nodes, wanted - tensors.keys())
    chooser = _Chooser(graph, sees, nodes, tensors)
    taken = {node: choice for node in graph.nodes if (choice := chooser.choice(node)) is not None}
    return Choices(taken, tensors)


class _Chooser:
    def __init__(self, graph: Graph, scope: Scope, nodes: list[Node], tensors: Mapping[Value, Tensor]) -> None:
        self.graph, self.scope, self.nodes, self.tensors = graph, scope, nodes, tensors
        self._demands: Demands | None = None

    def choice(self, node: Node) -> Choice | None:
        if node.op != "If" or node.domain or not self.scope.context.purity.is_known(node) or node.inputs[0] is None:
            return None
        truth = _truth(self.tensors.get(node.inputs[0]))
        if truth is not None:
            return Choice(_branch(truth), f"the condition is {str(truth).lower()}")
        return self._by_rank(node, node.inputs[0])

    def _by_rank(self, node: Node, condition: Value) -> Choice | None:
        """Where the condition follows from the rank of one value: the branch taken with each rank that can run."""
        found = measured(condition, self.scope)
        ranks = None if found is None else possible(found.value, self.scope)
        if found is None or ranks is None:
            return None
        if self._demands is None:
            self._demands = Demands(self.graph, self.scope)
        cases: dict[int, bool] = {}
        for rank in sorted(ranks):
            assumed = Scope(
                self.scope.context, self.graph, {**self.scope.known, **found.assuming(rank)}, self.scope.uses
            )
            truth = _truth(foresee(self.graph, assumed, self.nodes, {condition}).get(condition))
            if truth is None:
                return None
            cases[rank] = truth
        rank = settled(node, found.value, cases, self._demands, self.scope)
        if rank is None:
            return None
        return Choice(_branch(cases[rank]), f"what follows runs with rank {rank} alone")


def _truth(tensor: Tensor | None) -> bool | None:
    if tensor is None or tensor.dtype is not DType.BOOL or tensor.count != 1:
        return None
    return bool(tensor.numpy().reshape(-1)[0])


def _branch(truth: bool) -> str:
    return "then_branch" if truth else "else_branch"
