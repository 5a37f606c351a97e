"""A model's output as named arrays, whatever holds them: a tensor, a sequence, a map, an optional."""

from __future__ import annotations

from typing import Any

import numpy as np

from superopt.ir.tensor import Array, dtype_of
from superopt.runtime.values import Value


def leaves(value: Value) -> dict[str, Array]:
    """`""` names a tensor by itself, `[0]` the first of a sequence; an empty optional has none."""
    found: dict[str, Array] = {}
    _collect(value, "", found)
    return found


def kind_of(array: Array) -> str:
    return str(dtype_of(array))


def _collect(value: Any, path: str, found: dict[str, Array]) -> None:
    if value is None:
        return
    if isinstance(value, dict):
        for key in sorted(value, key=str):
            _collect(value[key], f"{path}{{{key}}}", found)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            _collect(item, f"{path}[{i}]", found)
    else:
        found[path] = np.asarray(value, object) if isinstance(value, str) else np.asarray(value)
