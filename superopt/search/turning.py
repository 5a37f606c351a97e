"""Weights of products kept the other way round, where kernels read them faster so.

Tensor cores of a GPU take float32 as TF32, and both matrices along the rows that are summed over. A network exported
from torch has its weights across: in ViT at a batch of 16 an H200 takes 48 µs on average for the larger products of a
layer, and 40 µs as torch itself keeps them (benchmarks/results/kernels-h200.txt). That is a matter of kernels, which
prices do not know of; so the fastest model is raced against the same one with all such weights turned.
"""

from __future__ import annotations

from math import prod

from superopt.cost.weights import is_weight
from superopt.ir.graph import Node
from superopt.ir.onnx.stats import total_bytes
from superopt.ir.types import DType
from superopt.runtime.deployment import Deployment
from superopt.search.variants import ROOM, TURNED, Variant
from superopt.search.workshop import Workshop

ROWS = 512
"""Below them a product takes as long as it takes to read its weights, in whichever order."""
MOST = 300
"""Products: each is a step of its own, and all are replayed to build the model."""
_PRODUCTS = frozenset(("MatMul", "Gemm", "com.microsoft::FusedMatMul"))


def turned(workshop: Workshop, base: Variant, timed: Deployment, growth: int, numbered: int = 0) -> Variant | None:
    """The variant with its weights turned, where that may pay and takes no more than so many bytes of `growth`; `timed`
    is what everything is timed with, and regions are `numbered` up to there."""
    asks = timed.target == "cuda" and timed.provider_settings["use_tf32"] == "1"
    if not asks or total_bytes(workshop.model) > ROOM:
        return None
    if not 0 < sum(map(_may_gain, base.graph.all_nodes())) <= MOST:
        return None
    trace = workshop.extended(base.trace, workshop.book.rules.late, _may_gain, numbered)
    if workshop.grown(trace) > growth:  # something else reads them, too
        return None
    graph, made, notes = workshop.build(trace)
    if len(made) <= len(base.trace):
        return None
    return Variant(TURNED, graph, base.passes, tuple(made), notes=(*base.notes, *notes))


def _may_gain(node: Node) -> bool:
    """Whether it is a product of many rows in float32 with weights that are kept across."""
    if node.kind not in _PRODUCTS or len(node.inputs) < 2 or dict(node.attributes).get("transB", 0):
        return False
    weights, known = node.inputs[1], node.outputs[0].tensor_type
    if weights is None or not is_weight(weights) or known is None or known.dtype != DType.FLOAT32:
        return False
    rows = (known.shape or ())[:-1]
    return not all(isinstance(n, int) for n in rows) or prod(n for n in rows if isinstance(n, int)) >= ROWS
