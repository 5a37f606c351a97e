"""BatchNormalization in inference is an affine map of each channel: it goes into the convolution before it.

((W∗x + b) − mean) · scale / √(var + ε) + B  =  (W·f)∗x + ((b − mean)·f + B)   with   f = scale / √(var + ε)
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from superopt.ir.graph import Constant, Node, Value, make_node
from superopt.ir.tensor import Array, ArrayTensor, Tensor, numpy_dtype
from superopt.ir.types import DType
from superopt.normalize.rule import Replacement, Result, Rule
from superopt.normalize.scope import Scope

PROOF = "by definition; rounded once from float64"

_PRECISION = {DType.FLOAT16: 2.0**-11, DType.BFLOAT16: 2.0**-8, DType.FLOAT32: 2.0**-24, DType.FLOAT64: 2.0**-53}
"""Relative error of one rounding; what is lost beyond it is lost to overflow or underflow."""
_SLACK = 1.001


def _merge(node: Node, scope: Scope) -> Result:
    conv = scope.operator(node.inputs[0], "Conv", "ConvTranspose")
    if conv is None or scope.uses[Value(conv)] != 1 or not _is_inference(node):
        return None
    weight = scope.tensor(conv.inputs[1])
    if weight is None or weight.dtype not in _PRECISION or len(weight.shape) < 3 or not weight.count:
        return None
    groups, rows, channels = _layout(conv, weight)
    bias = _bias(conv, scope, channels)
    statistics = [_vector(value, scope, channels) for value in node.inputs[1:5]]
    growth = weight.nbytes + channels * weight.dtype.bits // 8 - _freed(node, conv, scope)
    if bias is None or any(s is None for s in statistics) or not scope.context.budget.allows(growth):
        return None
    scale, shift, mean, variance = (s for s in statistics if s is not None)
    spread = variance + float(node.attribute("epsilon", 1e-5))
    if not np.all(spread > 0):
        return None
    factor = scale / np.sqrt(spread)
    merged = _rounded(weight, (groups, rows, channels // groups, -1), factor, (bias - mean) * factor + shift)
    if merged is None:
        return None
    new_weight, new_bias = Constant(ArrayTensor(merged[0])), Constant(ArrayTensor(merged[1]))
    return Replacement(
        make_node(conv.op, (conv.inputs[0], Value(new_weight), Value(new_bias)), conv.attributes, node.types),
        like=conv,
        constants=((new_weight, "_weight"), (new_bias, "_bias")),
        growth=growth,
        proof=PROOF,
    )


def _is_inference(node: Node) -> bool:
    """Running statistics are read, not made; before opset 9 `spatial=0` meant one of them for each element."""
    return len(node.types) == 1 and not node.attribute("training_mode", 0) and node.attribute("spatial", 1) == 1


def _bias(conv: Node, scope: Scope, channels: int) -> Array | None:
    value = conv.inputs[2] if len(conv.inputs) > 2 else None
    return np.zeros(channels) if value is None else _vector(value, scope, channels)


def _vector(value: Value | None, scope: Scope, channels: int) -> Array | None:
    tensor = scope.tensor(value)
    if tensor is None or tensor.shape != (channels,) or tensor.dtype not in _PRECISION:
        return None
    return tensor.numpy().astype(np.float64)


def _freed(node: Node, conv: Node, scope: Scope) -> int:
    reads = Counter(v for v in (*conv.inputs[1:], *node.inputs[1:]) if v is not None)
    return sum(scope.own_bytes(v) for v, count in reads.items() if scope.uses[v] == count)


def _layout(conv: Node, weight: Tensor) -> tuple[int, int, int]:
    """Groups, input channels of a group, output channels, as the weight's leading axes hold them."""
    if conv.op == "Conv":
        return 1, 1, weight.shape[0]
    groups = conv.attribute("group", 1)
    return groups, weight.shape[0] // groups, weight.shape[1] * groups


def _rounded(
    weight: Tensor, layout: tuple[int, int, int, int], factor: Array, bias: Array
) -> tuple[Array, Array] | None:
    """The new weight and bias, unless rounding them loses more than rounding does."""
    dtype = numpy_dtype(weight.dtype)
    with np.errstate(all="ignore"):
        exact = weight.numpy().astype(np.float64).reshape(layout) * factor.reshape(layout[0], 1, layout[2], 1)
        new_weight, new_bias = exact.astype(dtype), bias.astype(dtype)
        lost = np.abs(new_weight.astype(np.float64) - exact).max(axis=(1, 3)).reshape(-1)
        lost_bias = np.abs(new_bias.astype(np.float64) - bias)
        size = np.abs(exact).max(axis=(1, 3)).reshape(-1)
        tolerance = _PRECISION[weight.dtype] * _SLACK
        fits = (lost <= tolerance * size) & (lost_bias <= tolerance * np.maximum(size, np.abs(bias)))
    if not np.all(fits):  # false for NaN and infinity as well
        return None
    return new_weight.reshape(weight.shape), new_bias


RULES = (Rule("batchnorm-into-conv", ("BatchNormalization",), _merge),)
