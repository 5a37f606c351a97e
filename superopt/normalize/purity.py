"""Which nodes compute a function of their inputs and nothing else, by definitions we know.

Only those are folded, merged or dropped. A random node stays even when nobody reads it: dropping one changes what the
others draw. An operator of another domain, or one that the model defines itself, may be anything.
"""

from __future__ import annotations

from collections.abc import Callable

from superopt.ir.graph import Graph, Node, Value
from superopt.ir.onnx.model import OPSETS, Model
from superopt.ir.onnx.small import is_standard
from superopt.ir.tensor import Tensor

RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
CONTROL_FLOW = frozenset({"If", "Loop", "Scan", "SequenceMap"})
"""Operators whose bodies we know how to read."""

_DOMAINS = ("", "ai.onnx.ml")

FindTensor = Callable[[Value], Tensor | None]


class Purity:
    def __init__(self, model: Model) -> None:
        self._functions, self._opsets = model.functions, model.opsets
        self._graphs: dict[Graph, bool] = {}

    def is_known(self, node: Node) -> bool:
        """An operator that means what ONNX says it means."""
        if node.domain not in _DOMAINS or (node.domain, node.op) in self._functions:
            return False
        version = self._opsets.get(node.domain, 0)
        if not node.domain and version not in OPSETS:
            return False
        return is_standard(node.domain, node.op, version)

    def is_pure(self, node: Node, tensor: FindTensor) -> bool:
        """`tensor` finds the constant behind a value, if there is one."""
        if not self.is_known(node) or node.op in RANDOM:
            return False
        if node.op == "Dropout" and not node.domain and not is_inference(node, tensor):
            return False
        if node.op not in CONTROL_FLOW:
            return not node.bodies
        return all(self._is_pure_graph(body) for body in node.bodies)

    def _is_pure_graph(self, graph: Graph) -> bool:
        found = self._graphs.get(graph)
        if found is None:
            found = self._graphs[graph] = all(self.is_pure(node, _own_tensor) for node in graph.nodes)
        return found


def is_inference(dropout: Node, tensor: FindTensor) -> bool:
    """Dropout passes its input through unless `training_mode` (from opset 12 on) is or may be true."""
    if len(dropout.inputs) < 3 or dropout.inputs[2] is None:
        return True
    mode = tensor(dropout.inputs[2])
    return mode is not None and mode.readable and not mode.numpy().any()


def _own_tensor(value: Value) -> Tensor | None:
    return value.constant
