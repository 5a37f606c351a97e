"""The original against itself: how much its outputs move under noise of the size of rounding.

A candidate that exceeds the tolerance may be wrong, or the model may amplify rounding. The original tells: it is run
again with its inputs moved by a few units of the last place, with its weights moved by one (inputs of zero cannot be
moved, and what is computed from them errs all the same), and once more with onnxruntime's optimizer off. It is
computed more precisely besides (superopt.ir.onnx.widened): that tells what rounding on the way does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import ml_dtypes
import numpy as np

from superopt.check.compare import Gap, compare
from superopt.check.tolerance import Rule
from superopt.errors import CannotRun
from superopt.ir.onnx import Model
from superopt.ir.onnx.widened import widened
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
PRECISE_MULTIPLE = 4.0
"""And be this many times as far from the original as that is from itself, computed more precisely."""

Feeds: TypeAlias = "Mapping[int, Callable[[], dict[str, Value]]]"
"""Inputs by ticket, made when they are needed."""
Outputs: TypeAlias = "Mapping[str, Value]"


@dataclass(frozen=True)
class Own:
    """An output of the original against itself, on one input set."""

    moved: Sequence[Gap] = ()
    """Under noise of the size of rounding."""
    precise: Gap | None = None
    """Computed more precisely."""

    @property
    def noise(self) -> float:
        """In tolerances."""
        return max((g.ratio for g in self.moved if not g.structure), default=0.0)

    @property
    def imprecision(self) -> float:
        return self.precise.ratio if self.precise is not None and not self.precise.structure else 0.0

    @property
    def allows(self) -> float:
        """Tolerances that a candidate may be off by."""
        return max(1.0, MULTIPLE * self.noise, PRECISE_MULTIPLE * self.imprecision)


@dataclass(frozen=True)
class Judgement:
    verdict: Literal["widened", "aside", "different"]
    factor: float = 1.0
    """By how much the tolerance was widened."""
    own: Own = field(default_factory=Own)


def own_gaps(
    model: Model,
    open_at: Callable[[Deployment, Mapping[str, Array]], Session],
    deployment: Deployment,
    feeds: Feeds,
    expected: Callable[[int], Outputs],
    rules: Mapping[str, Rule],
) -> dict[int, dict[str, Own]]:
    """For each doubtful run, by ticket, how far the original's outputs are from themselves."""
    weights = {name: constant.tensor for constant, name in model.graph.constants.items()}
    again = _moved_runs(open_at, deployment, feeds, weights)
    precise = _precise_runs(model, deployment, feeds)
    found: dict[int, dict[str, Own]] = {}
    for ticket in feeds:
        known, exact = expected(ticket), precise.get(ticket)
        found[ticket] = {
            name: Own(
                [compare(known[name], outputs[name], rule) for outputs in again[ticket]],
                None if exact is None else compare(known[name], exact[name], rule),
            )
            for name, rule in rules.items()
        }
    return found


def _moved_runs(
    open_at: Callable[[Deployment, Mapping[str, Array]], Session],
    deployment: Deployment,
    feeds: Feeds,
    weights: Mapping[str, Tensor],
) -> dict[int, list[Outputs]]:
    """Outputs under noise; a variant that does not run is left out."""
    found: dict[int, list[Outputs]] = {ticket: [] for ticket in feeds}
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


def _precise_runs(model: Model, deployment: Deployment, feeds: Feeds) -> dict[int, Outputs]:
    """Outputs of a more precise model; none where there is none, or it does not run."""
    data = widened(model)
    if data is None:
        return {}
    try:
        with Session(data, deployment) as session:
            return {ticket: session.run(make()) for ticket, make in feeds.items()}
    except CannotRun:
        return {}


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


def judge(gap: Gap, own: Own, cap: float) -> Judgement:
    """What a gap beyond the tolerance means, given the original's own gaps on the same inputs."""
    shifts = any(g.structure for g in own.moved)
    if gap.structure:
        return Judgement("aside" if shifts else "different", own=own)
    if gap.wrong and not shifts and not _covered(gap, own.moved):
        return Judgement("different", own=own)
    if gap.ratio > own.allows:
        return Judgement("different", own=own)
    if gap.wrong or gap.coarse > cap:
        return Judgement("aside" if gap.ratio <= max(1.0, MULTIPLE * own.noise) else "different", own=own)
    return Judgement("widened", gap.ratio, own)


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
