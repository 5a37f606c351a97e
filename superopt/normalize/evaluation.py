"""Values of constant nodes, computed by onnxruntime: one session for all of them, halved only where it fails. What it
has no kernel for in bfloat16 it computes in float32, if it only moves elements: that is exact.

A float of 16 bits is rounded where it is made, and a node that reads it waits for the next session: within one session
onnxruntime computes in float32 what the processor cannot do in 16 bits, and leaves the roundings in between out."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from superopt.errors import CannotRun, SuperoptError
from superopt.ir.graph import Node, Value
from superopt.ir.onnx.model import Model
from superopt.ir.onnx.small import runnable
from superopt.ir.tensor import Array, ArrayTensor, Tensor, numpy_dtype
from superopt.ir.types import DType, TensorType
from superopt.runtime.evaluate import evaluate

MOVERS = frozenset(["Expand", "Tile", "Where"])
"""Operators that only move elements, and that the CPU provider has no kernel for in bfloat16."""
SMALL = frozenset([DType.FLOAT16, DType.BFLOAT16])
PATIENCE = 100
"""Sessions that may fail before the rest is left alone."""


@dataclass(frozen=True)
class Job:
    """A node to compute: which of its outputs exist, and what each of those must turn out to be."""

    node: Node
    present: tuple[bool, ...]
    types: Mapping[Value, TensorType]


def compute(
    model: Model, jobs: Sequence[Job], known: Mapping[Value, Tensor], wanted: set[Value]
) -> tuple[dict[Value, Tensor], set[Node]]:
    """The wanted values, and the nodes that onnxruntime could not compute or computed to another type."""
    tensors = dict(known)
    failed: set[Node] = set()
    failures = 0
    batches = deque([list(jobs)])
    while batches:
        batch = _computable(batches.popleft(), tensors)
        if not batch:
            continue
        batch, waiting = _apart(batch)
        if waiting:
            batches.appendleft(waiting)
        later = {v for rest in batches for job in rest for v in job.node.inputs if v is not None}
        outputs = {v: t for job in batch for v, t in job.types.items() if v in wanted or v in later}
        small = runnable(model, [(job.node, job.present) for job in batch], tensors, outputs)
        try:
            found = [_checked(a, t) for a, t in zip(evaluate(small.data, small.feeds), outputs.values(), strict=True)]
        except SuperoptError:
            failures += 1
            if len(batch) == 1 and (own := _moved(model, batch[0], tensors)) is not None:
                tensors.update(own)
            elif len(batch) == 1 or failures > PATIENCE:
                failed.update(job.node for job in batch)
            else:
                half = len(batch) // 2
                batches.extendleft((batch[half:], batch[:half]))
        else:
            tensors.update(zip(outputs, found, strict=True))
        needed = wanted | {v for rest in batches for job in rest for v in job.node.inputs if v is not None}
        for value in [v for v in tensors if v not in needed]:
            del tensors[value]
    return {v: t for v, t in tensors.items() if v in wanted}, failed


def _moved(model: Model, job: Job, tensors: Mapping[Value, Tensor]) -> dict[Value, Tensor] | None:
    """What a node gives that only moves elements, by way of float32, which holds every bfloat16."""
    if job.node.op not in MOVERS or job.node.domain or any(t.dtype is not DType.BFLOAT16 for t in job.types.values()):
        return None
    wide = {v: _widened(tensors[v]) for v in job.node.inputs if v is not None}
    outputs = {v: replace(t, dtype=DType.FLOAT32) for v, t in job.types.items()}
    small = runnable(model, [(job.node, job.present)], wide, outputs)
    try:
        found = [a.astype(numpy_dtype(DType.BFLOAT16)) for a in evaluate(small.data, small.feeds)]
        return {v: _checked(a, t) for a, (v, t) in zip(found, job.types.items(), strict=True)}
    except SuperoptError:
        return None


def _widened(tensor: Tensor) -> Tensor:
    return ArrayTensor(tensor.numpy().astype(np.float32)) if tensor.dtype is DType.BFLOAT16 else tensor


def _computable(batch: list[Job], tensors: Mapping[Value, Tensor]) -> list[Job]:
    """The batch without nodes that wait for one that failed."""
    made: set[Value] = set()
    kept: list[Job] = []
    for job in batch:
        if all(v is None or v in tensors or v in made for v in job.node.inputs):
            made.update(job.types)
            kept.append(job)
    return kept


def _apart(batch: list[Job]) -> tuple[list[Job], list[Job]]:
    """What can be computed now, and what reads a float of 16 bits that is not rounded yet."""
    unrounded: set[Value] = set()
    now: list[Job] = []
    waiting: list[Job] = []
    for job in batch:
        waits = any(v in unrounded for v in job.node.inputs)
        (waiting if waits else now).append(job)
        unrounded.update(v for v, t in job.types.items() if waits or t.dtype in SMALL)
    return now, waiting


def _checked(array: Array, expected: TensorType) -> Tensor:
    tensor = ArrayTensor(array)
    fits = tensor.dtype == expected.dtype and len(tensor.shape) == expected.rank
    for found, dim in zip(tensor.shape, expected.shape or (), strict=False):
        fits = fits and (found == dim or not isinstance(dim, int))
    if not fits:
        raise CannotRun(f"expected {expected}, found {tensor.type}")
    return tensor
