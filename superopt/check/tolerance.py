"""How far two results may lie apart, per element type: one table.

An element passes when |a − b| ≤ absolute + relative · (|a| + scale), where `scale` is the root mean square of its own
slice of the original's output. Sums taken in another order err by the size of what was summed, not of what came out,
so the scale belongs in there. The slice (along the axis on which magnitudes differ most) keeps boxes of hundreds of
pixels from hiding wrong scores of 0.01 in the same tensor.

Where the numbers come from: 16 real float32 models, every Conv and MatMul split in two and added again, on normal
inputs: the worst error was 0.43 of the float32 row. One weight in 512 wrong by 0.1 % is outside it. The other floats
follow by precision: about 20 half-units of the last place, and float64 with room for kernels that go through float
constants. Integers, booleans and strings must be equal.

The absolute part is there for functions that saturate (Sigmoid, Softmax, …): onnxruntime computes them to 1e-7 of
their range, so results near 0 carry that much noise. Without one of them upstream it shrinks with the output: a model
whose results are all around 1e-12 is compared at that size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from superopt.check.traits import Traits
from superopt.ir.tensor import Array
from superopt.ir.types import DType


@dataclass(frozen=True)
class Rule:
    absolute: float
    relative: float
    cap: float = 0.0
    """Where the original's own noise widens the tolerance: the most a result may move, relative to |a| + the scale of
    the whole output. 1e-3 for float32: far beyond rounding, far below a wrong rewrite."""
    steps: bool = False
    """Integers that are codes of rounded floats: one step off is a rounding boundary, if it is rare."""


EXACT = Rule(0.0, 0.0)
TABLE: dict[DType, Rule] = {
    DType.FLOAT64: Rule(1e-11, 1e-9, 1e-6),
    DType.FLOAT32: Rule(2e-6, 2e-5, 1e-3),
    DType.FLOAT16: Rule(1e-3, 1e-2, 5e-2),
    DType.BFLOAT16: Rule(8e-3, 5e-2, 2e-1),
    DType.COMPLEX64: Rule(2e-6, 2e-5, 1e-3),
    DType.COMPLEX128: Rule(1e-11, 1e-9, 1e-6),
    # One step of the type itself.
    DType.FLOAT8E4M3FN: Rule(2**-9, 0.125, 0.25),
    DType.FLOAT8E4M3FNUZ: Rule(2**-10, 0.125, 0.25),
    DType.FLOAT8E5M2: Rule(2**-16, 0.25, 0.5),
    DType.FLOAT8E5M2FNUZ: Rule(2**-17, 0.25, 0.5),
    DType.FLOAT8E8M0: Rule(0.0, 1.0, 1.0),
    DType.FLOAT4E2M1: Rule(0.5, 0.5, 0.5),
}
QUANTIZED_CAP = 1e-2
"""Behind 8-bit codes noise moves in steps of 1/255 of a range."""
STEP_SHARE = 0.01
"""How many codes may lie one step off, over all input sets."""

GIANT = 1e8
"""Larger values (−1e9 in a masked score) do not count towards the scale of the others."""
SLICE = 16
"""Fewer elements make no scale of their own."""


def rule_of(dtype: DType | None, traits: Traits, magnitude: float) -> Rule:
    """For an output of this type; `magnitude` is the largest scale seen of it over all input sets."""
    if dtype is None or dtype not in TABLE:
        return Rule(0.0, 0.0, steps=True) if traits.code and dtype is not None and dtype.bits <= 8 else EXACT
    rule = TABLE[dtype]
    coarse = TABLE.get(traits.coarsest) if traits.coarsest is not None else None
    if coarse is not None and coarse.relative > rule.relative:
        rule = coarse  # float32 that was computed in float16 is as precise as float16
    shrink = 1.0 if traits.saturates or magnitude == 0 else min(1.0, magnitude)
    cap = max(rule.cap, QUANTIZED_CAP) if traits.quantizes else rule.cap
    return Rule(rule.absolute * shrink, rule.relative, cap)


def magnitude(array: Array) -> float:
    """Root mean square of what is finite and no giant."""
    return _magnitude(_squares(array))


def scales(reference: Array) -> tuple[float, Array]:
    """That of the whole, and for each element that of its slice, at most that of the whole; it broadcasts."""
    squares = _squares(reference)
    whole = _magnitude(squares)
    found, spread = np.full((1,) * reference.ndim, whole), 1.0
    for axis in range(reference.ndim):
        if reference.shape[axis] < 2 or reference.size // reference.shape[axis] < SLICE:
            continue
        others = tuple(a for a in range(reference.ndim) if a != axis)
        slices = np.sqrt(np.mean(squares, axis=others, keepdims=True))
        positive = slices[slices > 0]
        if positive.size and positive.max() / positive.min() > spread:
            found, spread = np.minimum(slices, whole), positive.max() / positive.min()
    return whole, found


def _magnitude(squares: Array) -> float:
    return float(np.sqrt(np.mean(squares))) if squares.size else 0.0


def _squares(array: Array) -> Array:
    """With what is infinite, NaN or giant set to 0; giants stay where there is nothing else."""
    is_ordinary = np.abs(array) < GIANT  # no NaN is, nor an infinity
    if is_ordinary.all():
        return array * array
    ordinary = np.where(is_ordinary, array, 0.0)
    kept = ordinary if ordinary.any() else np.where(np.isfinite(array), array, 0.0)
    return kept * kept
