"""A tiny model run once, exactly as written: how constants are folded."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from superopt.errors import CannotRun, LimitHit
from superopt.ir.tensor import Array
from superopt.ir.types import DType
from superopt.runtime.deployment import Deployment
from superopt.runtime.port import Port
from superopt.runtime.session import Session
from superopt.runtime.values import Value

_AS_WRITTEN = Deployment("cpu", threads=1, level="disable")


def evaluate(model: bytes, feeds: Mapping[str, Value], byte_limit: int | None = None) -> list[Array]:
    """The outputs in the model's order, from one CPU thread with optimizations off.

    With a limit, outputs whose declared shape is larger are refused before anything runs; those whose shape
    only the run tells are refused after it.
    """
    with Session(model, _AS_WRITTEN) as session:
        if byte_limit is not None:
            for port in session.outputs:
                _refuse_over(byte_limit, port.name, _declared_bytes(port))
        found = session.run(feeds)
    outputs: list[Array] = []
    for name, value in found.items():
        if not isinstance(value, np.ndarray):
            raise CannotRun(f"output {name}: expected a tensor, found {type(value).__name__}")
        if byte_limit is not None:
            _refuse_over(byte_limit, name, value.nbytes)
        outputs.append(value)
    return outputs


def _declared_bytes(port: Port) -> int:
    sizes = [d for d in port.shape or () if isinstance(d, int)]
    if not isinstance(port.dtype, DType) or len(sizes) < len(port.shape or ()):
        return 0
    return math.prod(sizes) * port.dtype.bits // 8


def _refuse_over(limit: int, name: str, size: int) -> None:
    if size > limit:
        raise LimitHit(f"output {name}: {size} bytes, the limit is {limit}")
