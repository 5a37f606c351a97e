"""What one node asks of a device, as amounts that a linear model prices: launches, bytes, elements, operations.

Amounts are counted from types alone, so that a node can be priced without running or even building it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from superopt.cost import einsums, products, traffic
from superopt.cost.columns import Amounts, Column
from superopt.cost.fusions import ABSORBED, ALONE, BIAS
from superopt.cost.kinds import KINDS
from superopt.cost.measures import Measures, typed
from superopt.cost.weights import is_weight
from superopt.ir.graph import Node

_Counter: TypeAlias = Callable[[Node, str, Measures], Amounts]
_COUNTERS: dict[str, _Counter] = {
    "element-wise": traffic.elementwise,
    "function": traffic.function,
    "movement": traffic.movement,
    "reduction": traffic.reduction,
    "channel-wise": traffic.channelwise,
    "pool": traffic.pool,
    "convolution": products.convolution,
    "product": products.product,
    "einsum": einsums.einsum,
    "attention": products.attention,
    "recurrent": products.recurrent,
}


def amounts(node: Node, measures: Measures, role: str = ALONE) -> Amounts:
    """What a run-time node costs by itself, absorbed by a neighbour, or as another operator that it is the end of."""
    if role in (ABSORBED, BIAS):
        data = [v for v in node.inputs if v is not None and not is_weight(v)]
        what = node.op if len(data) < 2 else f"{node.op} of data"
        passing = (Column("absorbed", "byte", what), measures.bytes(node.outputs[0]))
        return (passing, *products.bias(node, measures)) if role == BIAS else (passing,)
    op = _of_whole_images(node, role or node.op, measures)
    kind = KINDS.get(op, "element-wise")
    if kind == "view" or not node.types:
        return ((Column("launch", "run", "view"), 1.0),)
    return ((Column("launch", "run", _launched(node, op, kind)), 1.0), *_COUNTERS[kind](node, op, measures))


def _of_whole_images(node: Node, op: str, measures: Measures) -> str:
    """A pool with one window for an image is what the operator without windows is."""
    if op not in ("AveragePool", "MaxPool") or not node.types:
        return op
    return f"Global{op}" if math.prod(measures.shape(node.outputs[0])[2:]) == 1 else op


def _launched(node: Node, op: str, kind: str) -> str:
    """Whose launch it is. What a library of kernels does is prepared alike for all its operators, and most of them are
    never measured alone: a FusedMatMul is not cheaper to start than a MatMul because nobody has timed it."""
    if kind == "einsum":
        return "product"
    return typed(node, kind) if kind == "attention" else kind if kind in ("product", "convolution") else op
