"""What onnxruntime's CUDA provider has no kernel for, of the operators that rules write and its CPU provider runs.

Such a node would run on the CPU, its operands carried there and back, or the session would not open at all. Seen with
onnxruntime 1.31.1 on an H200; what is not told here the search learns from sessions that do not open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from superopt.ir.types import DType

Runs: TypeAlias = Callable[[DType, Mapping[str, Any]], bool]


def _fused_conv(dtype: DType, arguments: Mapping[str, Any]) -> bool:
    return dtype is DType.FLOAT32 and arguments.get("activation") in (None, "Relu")


def _never(dtype: DType, arguments: Mapping[str, Any]) -> bool:
    return False


_ON_CUDA: dict[str, Runs] = {"com.microsoft::FusedConv": _fused_conv, "com.microsoft::FusedGemm": _never}


def runs_on_cuda(kind: str, dtype: DType, arguments: Mapping[str, Any]) -> bool:
    """An operator on elements of this type with these attributes."""
    runs = _ON_CUDA.get(kind)
    return runs is None or runs(dtype, arguments)
