"""What a rule may know about the graph it works on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from superopt.ir.graph import Constant, Graph, Node, Parameter, Value
from superopt.ir.onnx.model import Model
from superopt.ir.onnx.tensors import from_values
from superopt.ir.tensor import Array, Tensor
from superopt.ir.types import DType
from superopt.normalize.journal import Budget, Journal
from superopt.normalize.purity import Purity

READABLE = 1 << 20
"""Bytes of the largest constant that a rule looks into."""
SHORT = 4096
"""Elements of the longest list of axes, pads or dims that a rule reads."""

_CONSTANT_ATTRIBUTES = {
    "value_int": DType.INT64,
    "value_ints": DType.INT64,
    "value_float": DType.FLOAT32,
    "value_floats": DType.FLOAT32,
    "value_string": DType.STRING,
    "value_strings": DType.STRING,
}


@dataclass
class Context:
    """What all graphs of one model share while it is normalized."""

    model: Model
    journal: Journal
    budget: Budget
    purity: Purity
    names: Counter[str]
    """In how many graphs each value's name occurs."""
    for_cuda: bool = False
    """Whether CUDA is what the model is for: some spellings are faster there alone."""
    fills: dict[Tensor, object] = field(default_factory=dict[Tensor, object])
    literals: dict[Node, Tensor | None] = field(default_factory=dict[Node, "Tensor | None"])
    unfoldable: set[Node] = field(default_factory=set[Node])
    """Nodes that onnxruntime refused to evaluate."""
    held: int = 0
    """Bytes of constants made by folding: they are in memory, where the file's own may lie on disk."""
    computed: int = 0
    """Bytes that folding computed, what was thrown away again included."""

    def fresh(self, base: str) -> str:
        name, count = base, 1
        while self.names[name]:
            count += 1
            name = f"{base}_{count}"
        self.names[name] = 1
        return name

    def literal(self, node: Node) -> Tensor | None:
        """The tensor of a Constant node, whichever attribute holds it."""
        if node not in self.literals:
            self.literals[node] = self._literal(node)
        return self.literals[node]

    def _literal(self, node: Node) -> Tensor | None:
        if node.op != "Constant" or node.domain or not self.purity.is_known(node) or len(node.attributes) != 1:
            return None
        [(name, value)] = node.attributes
        if isinstance(value, Tensor):
            return value
        dtype = _CONSTANT_ATTRIBUTES.get(name)
        return None if dtype is None or not isinstance(value, int | float | str | tuple) else from_values(value, dtype)

    def fill(self, tensor: Tensor) -> object:
        """The one number that every element equals; None where there is none or it was not looked at."""
        if tensor not in self.fills:
            self.fills[tensor] = _fill(tensor)
        return self.fills[tensor]


def _fill(tensor: Tensor) -> object:
    if not tensor.readable or not tensor.count or not tensor.dtype.bits or tensor.nbytes > READABLE:
        return None
    if tensor.dtype in (DType.COMPLEX64, DType.COMPLEX128):
        return None
    array = tensor.numpy()
    first = array.reshape(-1)[0]
    if not np.all(array == first):
        return None
    return float(first) if tensor.dtype.is_float else int(first)


class Scope:
    """One graph: its constants, those it sees outside or takes for granted, and how often each value is read."""

    def __init__(self, context: Context, graph: Graph, known: Mapping[Value, Tensor], uses: Counter[Value]) -> None:
        self.context, self.graph, self.known, self.uses = context, graph, known, uses
        self._listed = frozenset(graph.input_names)

    @property
    def opset(self) -> int:
        return self.context.model.opset

    def tensor(self, value: Value | None) -> Tensor | None:
        """The constant behind a value: an initializer, a Constant node, or an outer one seen from a body."""
        if value is None:
            return None
        producer = value.producer
        if isinstance(producer, Constant):
            found = producer.tensor
        elif isinstance(producer, Node):
            found = self.context.literal(producer) or self.known.get(value)
        else:
            found = self.known.get(value)
        return found if found is not None and found.readable else None

    def own_bytes(self, value: Value) -> int:
        """Bytes that go when nobody reads a constant: none for an outer one, nor for one that is listed as an input."""
        producer = value.producer
        if isinstance(producer, Parameter):
            return 0
        if isinstance(producer, Constant):
            return 0 if self.graph.constants.get(producer) in self._listed else producer.tensor.nbytes
        return (
            sum(a.nbytes for _, a in producer.attributes if isinstance(a, Tensor)) if producer.op == "Constant" else 0
        )

    def is_filled(self, value: Value | None, number: int) -> bool:
        tensor = self.tensor(value)
        return tensor is not None and self.context.fill(tensor) == number

    def array(self, value: Value | None) -> Array | None:
        """A short constant: axes, pads, dims."""
        tensor = self.tensor(value)
        return None if tensor is None or tensor.count > SHORT else tensor.numpy()

    def integers(self, value: Value | None) -> tuple[int, ...] | None:
        array = self.array(value)
        return None if array is None or array.dtype.kind not in "iu" else tuple(int(i) for i in array.reshape(-1))

    def operator(self, value: Value | None, *ops: str) -> Node | None:
        """The node behind a value when it is the first output of one of these standard operators."""
        node = None if value is None or value.index else value.node
        if node is None or node.domain or node.op not in ops or not self.context.purity.is_known(node):
            return None
        return node

    def is_pure(self, node: Node) -> bool:
        return self.context.purity.is_pure(node, self.tensor)


def count_uses(graph: Graph) -> Counter[Value]:
    uses = Counter(graph.outputs)
    for node in graph.nodes:
        uses.update(node.operands)
    return uses
