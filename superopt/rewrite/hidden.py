"""Rows of scores that a mask hides altogether: onnxruntime's kernels do not agree on what attention is there.

Adding the lowest number of a type to a whole row makes all its scores equal: Softmax answers the mean of the values,
and so do the kernels of MultiHeadAttention. That of ONNX's own Attention answers 0 (and for a row of −∞, where the
others have NaN). Batches that are padded on the left have such rows. Seen with onnxruntime 1.31.1 on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from superopt.ir.graph import Node, Value
from superopt.ir.types import DType
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.constants import SEARCHED, Constants

_MASK = 3
"""Which operand of Attention it is."""
_LOWEST = {DType.FLOAT16: -6e4, DType.BFLOAT16: -1e38, DType.FLOAT32: -1e38, DType.FLOAT64: -1e38}
"""What is above this does not count as hidden."""


def refuse_hidden(before: Iterable[Node], after: Iterable[Node], constants: Constants) -> None:
    """Raises `Conflict` where nodes that give 0 take the place of others, or the other way round, and their masks may
    hide whole rows."""
    old, new = list(_masks(before)), list(_masks(after))
    if bool(old) != bool(new) and not all(_shows_every_row(mask, constants) for mask in (*old, *new)):
        raise Conflict("Attention gives 0 where its mask hides a whole row, and what it stands for does not")


def between(results: Iterable[Value], inputs: Iterable[Value]) -> Iterator[Node]:
    """The nodes that compute one from the other."""
    stack, seen = list(results), set(inputs)
    while stack:
        value = stack.pop()
        if value in seen or value.node is None:
            continue
        seen.add(value)
        yield value.node
        stack.extend(value.node.operands)


def _masks(nodes: Iterable[Node]) -> Iterator[Value]:
    for node in nodes:
        mask = node.inputs[_MASK] if len(node.inputs) > _MASK else None
        if node.op == "Attention" and not node.domain and mask is not None:
            yield mask


def _shows_every_row(mask: Value, constants: Constants) -> bool:
    """No, where that was not looked at. Expanding repeats rows, or the one number of each."""
    while (
        mask.node is not None and mask.node.op == "Expand" and not mask.node.domain and mask.node.inputs[0] is not None
    ):
        mask = mask.node.inputs[0]
    tensor = constants.tensor(mask)
    if tensor is None or tensor.count > SEARCHED or not tensor.shape:
        return False
    array = tensor.numpy()
    if tensor.dtype is DType.BOOL:
        return bool(array.any(axis=-1).all())
    lowest = _LOWEST.get(tensor.dtype)
    return lowest is not None and bool((array.astype(np.float64) > lowest).any(axis=-1).all())
