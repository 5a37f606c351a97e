"""The original against itself: how much its outputs move under noise of the size of rounding.

A candidate that exceeds the tolerance may be wrong, or the model may amplify rounding. The original tells: it is run
again with its inputs moved by a few units of the last place, with its weights moved by one (inputs of zero cannot be
moved, and what is computed from them errs all the same), and once more with onnxruntime's optimizer off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import ml_dtypes
import numpy as np

from superopt.check.compare import Gap
from superopt.errors import CannotRun
from superopt.ir.tensor import Array, Tensor
from superopt.ir.types import DType
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session
from superopt.runtime.values import Value

_FLOATS = frozenset({DType.FLOAT16, DType.FLOAT32, DType.FLOAT64})
UNITS = 4.0
"""How far inputs are moved, in units of their last place."""
MOVES = 2
WEIGHT_UNITS = 1.0
MOST_WEIGHT_BYTES = 256 << 20
"""Weights of larger models are moved in part: the smallest first, biases and scales among them."""
MULTIPLE = 8.0
"""A candidate may err this many times as much as the original's own noise."""


@dataclass(frozen=True)
class Judgement:
    verdict: Literal["widened", "aside", "different"]
    factor: float = 1.0
    """By how much the tolerance was widened."""
    own: float = 0.0
    """The original's own noise, in tolerances."""


def own_runs(
    open_at: Callable[[Deployment, Mapping[str, Array]], Session],
    deployment: Deployment,
    feeds: Mapping[int, Callable[[], dict[str, Value]]],
    weights: Mapping[str, Tensor],
) -> dict[int, list[dict[str, Value]]]:
    """For each doubtful run the original's outputs under noise; a variant that does not run is left out."""
    found: dict[int, list[dict[str, Value]]] = {ticket: [] for ticket in feeds}
    plain = replace(deployment, level="disable", threads=1)
    variants: list[tuple[Deployment, int, Mapping[str, Array]]] = [(deployment, MOVES, {}), (plain, 0, {})]
    variants += [(deployment, 0, moved_weights(weights, seed)) for seed in range(MOVES) if weights]
    for how, moves, instead in variants:
        try:
            session = open_at(how, instead)
        except CannotRun:
            continue
        with session:
            for ticket, make in feeds.items():
                for seed in range(moves) or (None,):
                    made = make() if seed is None else moved(make(), seed)
                    try:
                        found[ticket].append(session.run(made))
                    except CannotRun:
                        continue
    return found


def moved_weights(weights: Mapping[str, Tensor], seed: int) -> dict[str, Array]:
    """Floating-point weights off by up to one unit of their last place, the smallest first."""
    rng = np.random.default_rng([seed, len(weights), 1])
    found: dict[str, Array] = {}
    held = 0
    for name, tensor in sorted(weights.items(), key=lambda pair: (pair[1].nbytes, pair[0])):
        held += tensor.nbytes
        if held > MOST_WEIGHT_BYTES:
            break
        if tensor.readable and tensor.dtype in _FLOATS and tensor.count:
            found[name] = _moved(np.array(tensor.numpy()), rng, WEIGHT_UNITS)
    return found


def moved(feeds: Mapping[str, Value], seed: int) -> dict[str, Value]:
    """Every float off by up to `UNITS` of its last place; all else as it was."""
    rng = np.random.default_rng([seed, len(feeds)])
    return {name: _moved(value, rng) for name, value in feeds.items()}


def judge(gap: Gap, own: Sequence[Gap], cap: float) -> Judgement:
    """What a gap beyond the tolerance means, given the original's own gaps on the same inputs."""
    noise = max((g.ratio for g in own if not g.structure), default=0.0)
    shifts = any(g.structure for g in own)
    if gap.structure:
        return Judgement("aside" if shifts else "different", own=noise)
    if gap.wrong and not shifts and not _covered(gap, own):
        return Judgement("different", own=noise)
    if gap.ratio > max(1.0, MULTIPLE * noise):
        return Judgement("different", own=noise)
    if gap.wrong or gap.coarse > cap:
        return Judgement("aside", own=noise)
    return Judgement("widened", gap.ratio, noise)


def _covered(gap: Gap, own: Sequence[Gap]) -> bool:
    """Whether every place that differs is one where the original differs from itself."""
    for path, wrong in gap.wrong.items():
        flips: Array = np.zeros_like(wrong)
        for g in own:
            if path in g.wrong:
                flips = flips | g.wrong[path]
        if (wrong & ~flips).any():
            return False
    return True


def _moved(value: Any, rng: np.random.Generator, units: float = UNITS) -> Any:
    if isinstance(value, list):
        return [_moved(v, rng, units) for v in value]
    if not isinstance(value, np.ndarray) or value.dtype.kind in "biuOSU":
        return value
    try:
        unit = float(ml_dtypes.finfo(value.dtype).eps)
    except ValueError:
        return value
    wide = value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
    return np.asarray(wide * (1 + units * unit * rng.uniform(-1, 1, value.shape))).astype(value.dtype)
