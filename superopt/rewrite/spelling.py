"""One spelling of an operator's arguments, by what ONNX's argument names mean throughout its operators."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from superopt.ops.formula import NotCovered
from superopt.ops.index import Index
from superopt.ops.registry import Operator, Parameter
from superopt.rewrite.numerals import decimal

Shape = tuple[Index, ...] | None

_CONVS = ("Conv", "FusedConv")
"""Operators whose second operand holds filters, channels first."""
END = 2**31 - 1
"""From here on the bound of a Slice means the end of the axis."""
_FILLED_BY_DEFAULT = {("Pad", 1): 0}
"""Operands that may be left out when they hold this number."""


@dataclass(frozen=True)
class Spelled:
    arguments: Mapping[str, Any]
    dropped: frozenset[int]
    """Positions of operands that say nothing."""


def canonical(
    operator: Operator,
    raw: Mapping[str, Any],
    operands: tuple[Shape, ...],
    results: tuple[Shape, ...],
    fills: tuple[object, ...] = (),
) -> Spelled:
    """`raw` with every argument of the newest definition present, in one spelling."""
    found = {p.name: _default(p) for p in operator.parameters if p.kind != "tensor"}
    for name, value in raw.items():
        if name not in found:
            raise NotCovered(f"{name} is no argument of {operator.kind}")
        found[name] = value
    shape = operands[0] if operands else None
    _windows(found, operands, operator)
    _round_down(found, operands, results)
    _axes(found, operator, shape, results)
    if "shape" in found and results and results[0] is not None:
        found["shape"] = list(results[0])
        if "allowzero" in found:
            found["allowzero"] = 0
    if "split" in found and results and all(r is not None for r in results) and shape is not None:
        axis = found["axis"]
        found["split"] = [r[axis] for r in results if r is not None]
        if "num_outputs" in found:
            found["num_outputs"] = None
    if found.get("perm", 0) is None and shape is not None:
        found["perm"] = list(reversed(range(len(shape))))
    if isinstance(found.get("value"), np.ndarray):
        found["value"] = found["value"].reshape(-1)[0].item()
    dropped = frozenset(
        k for k, fill in enumerate(fills) if fill is not None and _FILLED_BY_DEFAULT.get((operator.name, k)) == fill
    )
    return Spelled(found, dropped)


def _default(parameter: Parameter) -> Any:
    return decimal(parameter.default, "float64") if isinstance(parameter.default, float) else parameter.default


def narrowed(arguments: Mapping[str, Any], written: Container[str]) -> Mapping[str, Any]:
    """Pads for every axis as pads for those that have some, where a rule names the axes."""
    pads = arguments.get("pads")
    if "axes" not in written or "axes" not in arguments or not isinstance(pads, list):
        return arguments
    rank = len(pads) // 2
    axes = [k for k in range(rank) if pads[k] or pads[rank + k]] or [rank // 2][:rank]
    return {**arguments, "pads": [pads[side + k] for side in (0, rank) for k in axes], "axes": axes}


def widened(arguments: Mapping[str, Any], rank: int) -> Mapping[str, Any]:
    """Pads for every axis, as all opsets have them."""
    if "pads" not in arguments or arguments.get("axes") is None:
        return arguments
    found = dict(arguments)
    _pads(found, [a + rank if a < 0 else a for a in found["axes"]], rank)
    return found


def _windows(found: dict[str, Any], operands: tuple[Shape, ...], operator: Operator) -> None:
    """Strides, dilations and pads of a window that slides over the axes behind the first two."""
    shape = operands[0] if operands else None
    if "strides" not in found or shape is None:
        return
    rank = len(shape) - 2
    for name in ("strides", "dilations"):
        if name in found and found[name] is None:
            found[name] = [1] * rank
    kernel = found.get("kernel_shape")
    if len(operands) > 1 and operands[1] is not None and "kernel_shape" in found:
        kernel, found["kernel_shape"] = list(operands[1][2:]), None
    if "pads" in found and "auto_pad" in found and found["auto_pad"] in ("NOTSET", "VALID", ""):
        if found["pads"] is None or found["auto_pad"] == "VALID":
            found["pads"] = [0] * 2 * rank
        found["auto_pad"] = "NOTSET"
    elif found.get("auto_pad") in ("SAME_UPPER", "SAME_LOWER") and kernel is not None and operator.name in _CONVS:
        pads = _same_pads(found, list(shape[2:]), kernel)
        if pads is not None:
            found["pads"], found["auto_pad"] = pads, "NOTSET"


def _round_down(found: dict[str, Any], operands: tuple[Shape, ...], results: tuple[Shape, ...]) -> None:
    """Rounding up says nothing where it adds no window."""
    shape, result = operands[0] if operands else None, results[0] if results else None
    pads, kernel = found.get("pads"), found.get("kernel_shape")
    if not found.get("ceil_mode") or shape is None or result is None or pads is None or kernel is None:
        return
    rank = len(shape) - 2
    steps = zip(shape[2:], kernel, found["strides"], found.get("dilations") or [1] * rank, strict=True)
    counts = [
        (n + pads[k] + pads[rank + k] - (window - 1) * dilation - 1) // stride + 1
        for k, (n, window, stride, dilation) in enumerate(steps)
        if isinstance(n, int)
    ]
    if counts == list(result[2:]):
        found["ceil_mode"] = 0


def _same_pads(found: Mapping[str, Any], sizes: list[Index], kernel: list[Index]) -> list[int] | None:
    before: list[int] = []
    after: list[int] = []
    for n, k, stride, dilation in zip(sizes, kernel, found["strides"], found["dilations"], strict=True):
        if not isinstance(n, int) or not isinstance(k, int):
            return None
        out = -(-n // stride)
        total = (out - 1) * stride + (k - 1) * dilation + 1 - n
        if total < 0:  # onnxruntime crops then, at one end or the other
            raise NotCovered(f"auto_pad {found['auto_pad']} with strides beyond the windows")
        small = total // 2
        before.append(small if found["auto_pad"] == "SAME_UPPER" else total - small)
        after.append(total - before[-1])
    return before + after


def _axes(found: dict[str, Any], operator: Operator, shape: Shape, results: tuple[Shape, ...]) -> None:
    if shape is None:
        return
    rank = len(shape)
    if isinstance(found.get("axis"), int) and found["axis"] < 0:
        found["axis"] += rank
    if "axes" not in found:
        return
    if operator.name == "Unsqueeze" and found["axes"] is not None:
        rank += len(found["axes"])
    if found["axes"] is None:
        found["axes"] = _all_axes(found, operator, shape)
    axes = [a + rank if a < 0 else a for a in found["axes"]]
    if "starts" in found:
        _slices(found, axes, shape)
    elif "pads" in found:
        _pads(found, axes, rank)
    else:
        found["axes"] = sorted(axes)


def _all_axes(found: Mapping[str, Any], operator: Operator, shape: tuple[Index, ...]) -> list[int]:
    if operator.name == "Squeeze":
        return [k for k, n in enumerate(shape) if isinstance(n, int) and n == 1]
    if "starts" in found:
        return list(range(len(found["starts"])))
    if found.get("noop_with_empty_axes"):
        raise NotCovered("noop_with_empty_axes")
    return list(range(len(shape)))


def _slices(found: dict[str, Any], axes: list[int], shape: tuple[Index, ...]) -> None:
    steps = found["steps"] if found["steps"] is not None else [1] * len(axes)
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    found["axes"] = [axes[k] for k in order]
    bounds = [_bounds(found["starts"][k], found["ends"][k], steps[k], shape[axes[k]]) for k in order]
    found["starts"], found["ends"] = [start for start, _ in bounds], [end for _, end in bounds]
    found["steps"] = [steps[k] for k in order]


def _bounds(start: Index, end: Index, step: Index, size: Index) -> tuple[Index, Index]:
    """From the front of the axis, and within it, where that is known: exporters write "to the end" as a huge number,
    and count from the end."""
    if not (isinstance(step, int) and step > 0 and isinstance(start, int) and isinstance(end, int)):
        return start, end
    if not isinstance(size, int):
        return start, size if end >= END else end
    first, past = (min(max(bound + size if bound < 0 else bound, 0), size) for bound in (start, end))
    return (first, past) if first < past else (start, end)


def _pads(found: dict[str, Any], axes: list[int], rank: int) -> None:
    """Pads for every axis."""
    count = len(axes)
    before, after = [0] * rank, [0] * rank
    for k, axis in enumerate(axes):
        before[axis], after[axis] = found["pads"][k], found["pads"][count + k]
    found["pads"], found["axes"] = before + after, None
