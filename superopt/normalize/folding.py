"""Constant folding: what depends on constants alone, or on types alone, is computed now.

A plan is made before anything is evaluated: each node in turn, with the size of its results predicted and the bytes it
frees counted, so that no prefix of the plan grows the model past its budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from superopt.ir.graph import Graph, Label, Node, Value
from superopt.ir.onnx.small import infer_types
from superopt.ir.tensor import ArrayTensor, Tensor
from superopt.ir.types import DType, TensorType, element_count
from superopt.normalize.builder import presence
from superopt.normalize.evaluation import Job, compute
from superopt.normalize.journal import place_of
from superopt.normalize.scope import SHORT, Scope
from superopt.normalize.statics import known_from_types

FOLDING, FROM_TYPES = "constant-folding", "static-shape"

KEPT = frozenset({"Constant", "QuantizeLinear", "DequantizeLinear"})
"""Not folded: constants themselves, and what keeps a quantized model quantized."""

_MAY_TRAP = frozenset({"Div", "Mod"})
"""Integer division: the processor traps on zero divisors, so the divisor must be seen first."""

_NO_LARGER_THAN_INPUT = frozenset({"NonZero", "Unique", "Compress"})
"""Operators whose result has a data-dependent size of at most int64 × rank for each element of the input."""

MOST_HELD = 256 << 20
"""Bytes of results that folding may hold in memory: a model of gigabytes on disk must not be turned over weight by
weight. What only other results are made of is not held."""

MOST_COMPUTED = 1 << 30
"""Bytes that folding may compute in all: what is thrown away takes time, too."""


@dataclass
class Folded:
    """Nodes that go, and what their values are from now on."""

    nodes: set[Node] = field(default_factory=set[Node])
    tensors: dict[Value, Tensor] = field(default_factory=dict[Value, Tensor])


@dataclass(frozen=True)
class _Step:
    name: str
    place: str
    detail: str
    node: Node
    growth: int


def fold(graph: Graph, scope: Scope, where: str) -> Folded:
    context = scope.context
    while True:
        plan = _Planner(graph, scope, where, deciding(graph))
        plan.plan(graph.nodes)
        if not plan.steps:
            return Folded()
        nodes = {step.node for step in plan.steps}
        wanted = plan.read_outside(nodes)
        # All of the plan is computed, also what nobody reads: whether a node can be must not depend on its readers.
        found, failed = compute(context.model, plan.jobs, plan.tensors, wanted | plan.last)
        if not failed:
            break
        context.unfoldable |= failed
    context.held += plan.held
    context.computed += plan.computed
    for step in plan.steps:
        context.budget.spent += step.growth
        context.journal.record(step.name, step.place, step.detail)
    return Folded(nodes, {value: tensor for value, tensor in found.items() if value in wanted})


def foresee(graph: Graph, scope: Scope, nodes: Collection[Node], wanted: Collection[Value]) -> dict[Value, Tensor]:
    """Those of the wanted values that these nodes alone decide; nothing is folded."""
    while True:
        plan = _Foresight(graph, scope, "", set())
        plan.plan(nodes)
        found_later = {v for v in wanted if v in plan.predicted}
        if not found_later:
            return {}
        found, failed = compute(scope.context.model, plan.jobs_for(found_later), plan.tensors, found_later)
        if not failed:
            return found
        scope.context.unfoldable |= failed


class _Planner:
    def __init__(self, graph: Graph, scope: Scope, where: str, left: set[Node]) -> None:
        """Nodes that are `left` are not decided by types."""
        self.graph, self.scope, self.where, self.left = graph, scope, where, left
        self.steps: list[_Step] = []
        self.jobs: list[Job] = []
        self.tensors: dict[Value, Tensor] = {}
        self.predicted: dict[Value, int] = {}
        """Bytes of values that will be known once the plan is carried out."""
        self.unread = Counter(scope.uses)
        self.growth = self.held = self.computed = 0
        self.read = {v.producer for v, count in scope.uses.items() if count}
        self.outputs = {v.producer for v in graph.outputs}

    def plan(self, nodes: Collection[Node]) -> None:
        for node in nodes:
            # A result of the graph needs a node behind it: an Identity would only take the place of this one.
            if node in self.read and node not in self.outputs:
                self._consider(node)

    def read_outside(self, nodes: set[Node]) -> set[Value]:
        made = {v for node in nodes for v in node.outputs}
        return {v for node in self.graph.nodes if node not in nodes for v in node.operands if v in made}

    @property
    def last(self) -> set[Value]:
        """What is computed and not computed with."""
        return {v for job in self.jobs for v in job.types} - {v for job in self.jobs for v in job.node.operands}

    def _consider(self, node: Node) -> None:
        scope = self.scope
        if node.op in KEPT or node in scope.context.unfoldable or not scope.is_pure(node) or node.bodies:
            return
        label = self.graph.labels.get(node, Label())
        place = place_of(node, label, self.where)
        array = None if node in self.left and node.op != "Shape" else known_from_types(node, scope)
        if array is not None:
            tensor = ArrayTensor(array)
            if self._accept(FROM_TYPES, place, node, {node.outputs[0]: tensor.nbytes}, str(tensor.type)):
                self.tensors[node.outputs[0]] = tensor
            return
        if not any(node.inputs) or not all(v is None or self._is_constant(v) for v in node.inputs):
            return
        present = presence(node, label)
        types = self._types(node, present)
        if types is None or self._may_trap(node):
            return
        sizes = {v: self._size(node, t) for v, t in types.items()}
        if self._accept(FOLDING, place, node, sizes, ", ".join(map(str, types.values()))):
            self.jobs.append(Job(node, present, types))
            self.tensors.update((v, t) for v in node.inputs if v is not None and (t := self._tensor(v)) is not None)

    def _accept(self, name: str, place: str, node: Node, sizes: dict[Value, int], detail: str) -> bool:
        context = self.scope.context
        made, gone = sum(sizes.values()), self._gone(node)
        growth = made - sum(map(self._own_bytes, gone))
        # What only types are asked of is computed all the same, and read by nothing that is computed.
        held = made - (0 if name == FROM_TYPES else sum(self.predicted.get(v, 0) for v in gone))
        if context.held + self.held + held > MOST_HELD or context.computed + self.computed + made > MOST_COMPUTED:
            return False
        if not context.budget.allows(growth, self.growth):
            return False
        if not context.journal.permits(name, place, ahead=len(self.steps)):
            return False
        self.growth += growth
        self.held += held
        self.computed += made
        self.unread.subtract(v for v in node.inputs if v is not None)
        self.predicted.update(sizes)
        self.steps.append(_Step(name, place, f"{node.kind} → {detail}", node, growth))
        return True

    def _is_constant(self, value: Value) -> bool:
        return value in self.predicted or self.scope.tensor(value) is not None

    def _tensor(self, value: Value) -> Tensor | None:
        """The value where it is known already, before anything is evaluated."""
        return self.tensors.get(value) or self.scope.tensor(value)

    def _gone(self, node: Node) -> list[Value]:
        """Constants that nobody reads once this node is gone."""
        reads = Counter(v for v in node.inputs if v is not None)
        return [v for v, count in reads.items() if self.unread[v] == count]

    def _own_bytes(self, value: Value) -> int:
        return self.predicted[value] if value in self.predicted else self.scope.own_bytes(value)

    def _bytes(self, value: Value) -> int:
        if value in self.predicted:
            return self.predicted[value]
        tensor = self.scope.tensor(value)
        return 0 if tensor is None else tensor.nbytes

    def _types(self, node: Node, present: tuple[bool, ...]) -> dict[Value, TensorType] | None:
        """What the node's results will be; None where that cannot be told before they are computed."""
        types = node.types
        if not all(_is_static(t) for t, there in zip(types, present, strict=True) if there):
            known = {v: t for v in node.inputs if v is not None and (t := self._tensor(v)) is not None}
            if any(v is not None and v not in known for v in node.inputs):
                return None
            types = infer_types(self.scope.context.model, node, known, present)
        found: dict[Value, TensorType] = {}
        for value, type_, there in zip(node.outputs, types, present, strict=True):
            if not there:
                continue
            if not isinstance(type_, TensorType) or type_.dtype is None or type_.rank is None:
                return None
            if type_.static_shape is None and node.op not in _NO_LARGER_THAN_INPUT:
                return None
            found[value] = type_
        return found

    def _size(self, node: Node, type_: TensorType) -> int:
        """Bytes of a result, or a bound on them."""
        assert type_.dtype is not None
        if type_.static_shape is None:
            tensor = self._tensor(node.inputs[0]) if node.inputs[0] is not None else None
            assert tensor is not None
            return max(tensor.nbytes, tensor.count * 8 * max(len(tensor.shape), 1))
        count = element_count(type_.static_shape)
        if type_.dtype is not DType.STRING:
            return (count * type_.dtype.bits + 7) // 8
        # A string is at most all strings it is made of together, or a number in words.
        return count * (40 + sum(self._bytes(v) for v in node.inputs if v is not None))

    def _may_trap(self, node: Node) -> bool:
        if node.op not in _MAY_TRAP or node.domain:
            return False
        type_ = node.inputs[1].tensor_type if node.inputs[1] is not None else None
        if type_ is not None and type_.dtype is not None and type_.dtype.is_float:
            return False
        divisor = None if node.inputs[1] is None else self._tensor(node.inputs[1])
        return divisor is None or bool(np.isin(divisor.numpy(), (0, -1)).any())


class _Foresight(_Planner):
    """A plan that is not carried out: only short values, whatever the budget and the journal say."""

    def plan(self, nodes: Collection[Node]) -> None:
        for node in nodes:
            self._consider(node)

    def _accept(self, name: str, place: str, node: Node, sizes: dict[Value, int], detail: str) -> bool:
        if sum(sizes.values()) > SHORT:
            return False
        self.predicted.update(sizes)
        return True

    def jobs_for(self, wanted: Collection[Value]) -> list[Job]:
        needed = set(wanted)
        jobs: list[Job] = []
        for job in reversed(self.jobs):
            if any(v in needed for v in job.node.outputs):
                needed.update(v for v in job.node.inputs if v is not None)
                jobs.append(job)
        return jobs[::-1]


def asked(node: Node) -> set[Value]:
    """Values that may decide an If: the node's own, or one inside its bodies."""
    values: set[Value] = set()
    if node.bodies and any(inner.op == "If" for body in node.bodies for inner in body.all_nodes()):
        values.update(node.captured)
    if node.op == "If" and node.inputs[0] is not None:
        values.add(node.inputs[0])
    return values


def deciding(graph: Graph) -> set[Node]:
    """Nodes on which the choice of an If depends.

    onnxruntime inlines a branch as soon as it can compute the condition, and then types what follows anew: models that
    run with both branches in place may be refused. Where the If stays (see `choices.py`), it is left to see through the
    condition by itself.
    """
    found: set[Node] = set()
    read: set[Value] = set()
    for node in reversed(graph.nodes):
        read |= asked(node)
        if any(v in read for v in node.outputs):
            found.add(node)
            read.update(node.operands)
    return found


def _is_static(type_: object) -> bool:
    return isinstance(type_, TensorType) and type_.dtype is not None and type_.static_shape is not None
