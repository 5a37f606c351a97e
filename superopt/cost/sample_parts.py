"""One operator as a workload of its own, which is what most samples are."""

from __future__ import annotations

from collections.abc import Mapping

from superopt.cost.workloads import data, node, weights, workload
from superopt.ir.graph import Attribute, Graph, Value
from superopt.ir.types import DType

RUNTIME = "com.microsoft"


def one(
    op: str,
    inputs: tuple[Value, ...],
    *shapes: tuple[int, ...],
    domain: str = "",
    attributes: Mapping[str, Attribute] | None = None,
) -> Graph:
    return workload(inputs, node(op, inputs, *shapes, domain=domain, attributes=attributes))


def convolution(
    channels: int,
    filters: int,
    groups: int,
    kernel: int,
    size: int,
    *,
    stride: int = 1,
    images: int = 1,
    dtype: DType = DType.FLOAT32,
) -> Graph:
    x = data(0, (images, channels, size, size), dtype)
    operands = x, weights(filters, channels // groups, kernel, kernel, dtype=dtype), weights(filters, dtype=dtype)
    attributes: dict[str, Attribute] = {
        "group": groups, "pads": (kernel // 2,) * 4, "kernel_shape": (kernel,) * 2, "strides": (stride,) * 2,
    }  # fmt: skip
    return one("Conv", operands, (images, filters, size // stride, size // stride), attributes=attributes)
