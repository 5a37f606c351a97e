"""What onnxruntime makes one kernel of, told from the graph alone.

The runtime's own optimizer is not run here: it would take longer than all the rest of pricing a candidate. Instead
each node gets a role. Most stand alone. Absorbed nodes are done by a neighbour in passing: what follows a convolution
or a product (scales, biases, normalizations by constants; an activation, where the device has kernels for it), what a
product undoes for itself (a transpose, a scale), transposes that cancel. A bias that a product takes in is told
apart: it is no work on a CPU, but on a GPU onnxruntime writes it to every row of the result first, by a kernel of its
own; and so is that of a convolution in groups, which gets a pass of its own behind it. And the last node of a
spelled-out function is priced as that function.

    linear      a result of a convolution or product, or that scaled and shifted by constants
    added       another tensor of the same shape was added to it
    activated   an activation was applied: nothing more is absorbed
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from superopt.cost.kinds import KINDS
from superopt.cost.manner import ON_A_CPU, Manner
from superopt.cost.spellings import spelled
from superopt.cost.weights import is_weight
from superopt.ir.graph import Node, Value

Stage: TypeAlias = Literal["linear", "added", "activated"]

ALONE: Final = ""
ABSORBED: Final = "absorbed"
BIAS: Final = "bias that is added apart"

_CONVOLUTIONS = frozenset(("Conv", "FusedConv", "NhwcConv", "NhwcFusedConv"))
_PRODUCTS = frozenset(("MatMul", "Gemm", "FusedMatMul", "FusedGemm"))
_ACTIVATIONS = frozenset(("Relu", "Clip", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid"))
_AFFINE = frozenset(("Add", "Sub", "Mul", "Div"))
_SCALES = frozenset(("Mul", "Div"))
_TAKES_SUM = frozenset(("Gelu", "LayerNormalization"))
_LONGEST_WAY_BACK = 8


def roles(nodes: Sequence[Node], uses: Mapping[Value, int], manner: Manner = ON_A_CPU) -> dict[Node, str]:
    """For nodes in order, how each is executed; `uses` counts who reads a value, results of the graph included."""
    found: dict[Node, str] = {}
    for node in nodes:
        spelling = spelled(node)
        if spelling is None:
            continue
        inside = _reads((node, *spelling.inner))
        if all(uses.get(v, 0) <= inside.get(v, 0) for n in spelling.inner for v in n.outputs):
            found[node] = spelling.op
            found.update((n, ABSORBED) for n in spelling.inner)
            before = spelling.x.node
            if before is not None and uses.get(spelling.x) == inside[spelling.x] and _joins(spelling.op, before, uses):
                found[before] = ABSORBED
    _follow_chains(nodes, uses, found, manner)
    for node in nodes:
        _absorb_operands(node, uses, found)
    return found


def _reads(nodes: Sequence[Node]) -> dict[Value, int]:
    found: dict[Value, int] = {}
    for node in nodes:
        for value in node.operands:
            found[value] = found.get(value, 0) + 1
    return found


def _joins(op: str, before: Node, uses: Mapping[Value, int]) -> bool:
    """Gelu with a bias and normalization with a residual are kernels of their own; but a product takes its bias in
    before anything else is looked at."""
    return op in _TAKES_SUM and before.op == "Add" and not before.domain and not _is_bias_of_product(before, uses)


def _is_bias_of_product(add: Node, uses: Mapping[Value, int]) -> bool:
    made = [v for v in add.inputs if v is not None and not is_weight(v)]
    before = made[0].node if len(made) == 1 else None
    if before is None or before.op not in _PRODUCTS or uses.get(made[0], 0) != 1:
        return False
    return not before.attribute("activation") and _is_bias_or_scale(add)


def _follow_chains(nodes: Sequence[Node], uses: Mapping[Value, int], found: dict[Node, str], manner: Manner) -> None:
    stages: dict[Node, tuple[Node, Stage]] = {}
    for node in nodes:
        if node.op in _CONVOLUTIONS or node.op in _PRODUCTS:
            stages[node] = (node, "activated" if node.attribute("activation") else "linear")
            continue
        if node in found:
            continue
        for value in node.inputs:
            reached = stages.get(value.node) if value is not None and value.node is not None else None
            if value is None or reached is None or uses.get(value, 0) != 1:
                continue
            following = _following(*reached, node, value, manner)
            if following is not None:
                stages[node] = (reached[0], following)
                found[node] = BIAS if node.op == "Add" and _adds_biases_apart(reached[0]) else ABSORBED
                break


def _adds_biases_apart(root: Node) -> bool:
    return root.op in _PRODUCTS or int(root.attribute("group", 1)) > 1


def _following(root: Node, stage: Stage, node: Node, value: Value, manner: Manner) -> Stage | None:
    """Where the chain stands after this node; None when the node does not join it."""
    if stage == "activated" or node.domain:
        return None
    convolves = root.op in _CONVOLUTIONS
    if node.op in _ACTIVATIONS:
        takes = convolves or root.op == "Gemm"
        return "activated" if takes and manner.activates(root, node.op) else None
    if stage != "linear":
        return None
    others = [v for v in node.inputs if v is not None and v != value]
    if all(map(is_weight, others)):
        if node.op == "BatchNormalization":
            return "linear" if convolves else None
        return "linear" if node.op in _AFFINE and (convolves or _is_bias_or_scale(node)) else None
    takes = convolves and node.op == "Add" and manner.adds(root)
    return "added" if takes and _same_shape(node) else None


def _absorb_operands(node: Node, uses: Mapping[Value, int], found: dict[Node, str]) -> None:
    """What this node takes over from those before it."""
    for value in node.inputs:
        before = value.node if value is not None else None
        if value is None or before is None or before in found or before.domain or uses.get(value, 0) != 1:
            continue
        undoes = node.op in _PRODUCTS and not node.domain and (_swaps_last_two(before) or _is_scale(before))
        if undoes or _joins(node.op, before, uses):
            found[before] = ABSORBED
    if node.op == "Transpose" and node not in found:
        undone = _undone_transpose(node, uses)
        if undone is not None and undone not in found:
            found[node] = found[undone] = ABSORBED


def _undone_transpose(node: Node, uses: Mapping[Value, int]) -> Node | None:
    """The transpose before this one that it undoes, with nothing but element-wise nodes in between."""
    value = node.inputs[0]
    for _ in range(_LONGEST_WAY_BACK):
        before = value.node if value is not None else None
        if value is None or before is None or uses.get(value, 0) != 1:
            return None
        if before.op == "Transpose":
            return before if _composes_to_nothing(before, node) else None
        data = [v for v in before.inputs if v is not None and not is_weight(v)]
        if len(data) != 1 or KINDS.get(before.op, "element-wise") not in ("element-wise", "function"):
            return None
        value = data[0]
    return None


def _composes_to_nothing(first: Node, second: Node) -> bool:
    one, other = first.attribute("perm"), second.attribute("perm")
    if not isinstance(one, tuple) or not isinstance(other, tuple) or len(one) != len(other):
        return False
    return all(one[int(axis)] == i for i, axis in enumerate(other))


def _swaps_last_two(node: Node) -> bool:
    perm = node.attribute("perm") if node.op == "Transpose" else None
    if not isinstance(perm, tuple) or len(perm) < 2:
        return False
    n = len(perm)
    return perm == (*range(n - 2), n - 1, n - 2)


def _is_scale(node: Node) -> bool:
    return node.op in _SCALES and any(v is not None and is_weight(v) for v in node.inputs) and _is_bias_or_scale(node)


def _is_bias_or_scale(node: Node) -> bool:
    """A product takes a vector that is added, and a number that scales."""
    most = 1 if node.op == "Add" else 0
    for value in node.inputs:
        if value is not None and is_weight(value):
            type_ = value.tensor_type
            if type_ is None or type_.shape is None or sum(d != 1 for d in type_.shape) > most:
                return False
    return True


def _same_shape(node: Node) -> bool:
    first, *rest = [v.tensor_type for v in node.inputs if v is not None]
    return first is not None and first.shape is not None and all(t == first for t in rest)
