"""What onnxruntime's CUDA provider has no kernel for, of the operators that rules write and its CPU provider runs.

Such a node would run on the CPU, its operands carried there and back, or the session would not open at all. Seen with
onnxruntime 1.31.1 on an H200; what is not told here the search learns from sessions that do not open.

And one whose kernel is not good enough: SkipSimplifiedLayerNormalization adds squares up in the type of its elements.
Networks that normalize by squares alone compute those in float32, for they have elements whose squares float16 does not
hold; no random input of a check need have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from superopt.ir.types import DType

Runs: TypeAlias = Callable[[DType, Mapping[str, Any]], bool]


def _fused_conv(dtype: DType, arguments: Mapping[str, Any]) -> bool:
    return dtype is DType.FLOAT32 and arguments.get("activation") in (None, "Relu")


def _in_float32(dtype: DType, arguments: Mapping[str, Any]) -> bool:
    return dtype is DType.FLOAT32


def _never(dtype: DType, arguments: Mapping[str, Any]) -> bool:
    return False


_ON_CUDA: dict[str, Runs] = {
    "com.microsoft::FusedConv": _fused_conv,
    "com.microsoft::FusedGemm": _never,
    "com.microsoft::SkipSimplifiedLayerNormalization": _in_float32,
}


def runs_on_cuda(kind: str, dtype: DType, arguments: Mapping[str, Any]) -> bool:
    """Whether it does, and well: an operator on elements of this type with these attributes."""
    runs = _ON_CUDA.get(kind)
    return runs is None or runs(dtype, arguments)
