"""Small numbers that show a rule wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from superopt.ops.condition import Condition
from superopt.ops.domains import Reals
from superopt.ops.element import Access
from superopt.ops.evaluate import Array, Unsupported, evaluate, sized
from superopt.ops.formula import Illegal, NotCovered, Tensor
from superopt.ops.registry import Registry
from superopt.rewrite.program import Impossible, Program, RealFact, block_ranks
from superopt.rewrite.rule import Rule

FEW, MANY = 6, 60
"""Instances tried for each number of axes: before a proof, and when it has failed."""
TRIES_FOR_EACH = 25
TOLERANCE = 1e-7
MOST_ELEMENTS = 1 << 18


class _Skip(Exception):
    """This draw says nothing."""


@dataclass
class _Numbers:
    """Unknowns as random numbers."""

    rng: np.random.Generator
    values: dict[str, Array]
    drawn: dict[str, Any]

    def positive(self, name: str) -> int:
        self.drawn[name] = int(self.rng.integers(1, 5))
        return self.drawn[name]

    def natural(self, name: str) -> int:
        self.drawn[name] = int(self.rng.integers(0, 4))
        return self.drawn[name]

    def real(self, name: str) -> Any:
        self.values[name] = np.asarray(_draw(self.rng, ()))
        self.drawn[name] = float(self.values[name])
        return Access(name, ())

    def choose(self, count: int) -> int:
        return int(self.rng.integers(count))

    def assume(self, condition: Condition | bool) -> None:
        if not condition:
            raise Impossible("drawn otherwise")

    def assume_real(self, fact: RealFact) -> None:
        if not fact.holds(float(self.values[fact.name])):
            raise Impossible("drawn otherwise")


def _draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Integers show order and zeros, fractions everything else."""
    if rng.random() < 0.5:
        return rng.integers(-3, 4, shape).astype(np.float64)
    return rng.standard_normal(shape) * 2


def find_counterexample(
    rule: Rule, registry: Registry, *, wanted: int = MANY, seed: int = 0, poison: bool = False
) -> str | None:
    """Sizes, attributes and values at which the sides differ, in words; None where none was found.

    With `poison` one element of one input is NaN, and only what the right side loses of it counts.
    """
    for ranks in block_ranks(rule):
        said = 0
        for attempt in range(wanted * TRIES_FOR_EACH):
            rng = np.random.default_rng([seed, attempt, *ranks.values()])
            try:
                found = _try(rule, registry, ranks, rng, poison)
            except (_Skip, Impossible, Unsupported):
                continue
            if found is not None:
                return found
            said += 1
            if said == wanted:
                break
    return None


def _try(
    rule: Rule, registry: Registry, ranks: Mapping[str, int], rng: np.random.Generator, poison: bool
) -> str | None:
    numbers = _Numbers(rng, {}, {})
    values = numbers.values

    def keep(name: str, tensor: Tensor) -> Tensor:
        shape = tuple(int(n) for n in tensor.shape)  # pyright: ignore[reportArgumentType]
        if any(n < 0 for n in shape) or np.prod(shape, dtype=np.int64) > MOST_ELEMENTS:
            raise _Skip
        if tensor.rank == 0 and not name:
            return tensor
        key = f"{name}#{len(values)}"
        values[key] = evaluate(tensor, values, Reals())
        return sized(shape, key)

    program = Program(rule, registry, numbers, keep)
    try:
        program.start(ranks)
        for given in rule.given:
            if given.kind in ("tensor", "bool"):
                shape = tuple(int(n) for n in program.inputs[given.name].shape)  # pyright: ignore[reportArgumentType]
                drawn = _draw(rng, shape)
                values[given.name] = (drawn > 0).astype(np.float64) if given.kind == "bool" else drawn
        if poison:
            _poison(rule, values, rng)
        left = program.run(rule.left)
    except (Illegal, NotCovered):
        raise _Skip from None
    sizes = ", ".join(f"{k}={v}" for k, v in numbers.drawn.items())
    try:
        right = program.run(rule.right)
    except Illegal as why:
        return f"at {sizes} the left side is legal and the right side is not: {why}"
    for name in rule.results:
        difference = (_lost if poison else _difference)(left[name], right[name], values)
        if difference is not None:
            return f"at {sizes}: {name}{difference}"
    return None


def _difference(left: Tensor, right: Tensor, values: Mapping[str, Array]) -> str | None:
    """Where neither side is a number (a division by zero), they do not differ."""
    if tuple(left.shape) != tuple(right.shape):
        return f" has shape {list(left.shape)} on the left and {list(right.shape)} on the right"
    a, b = evaluate(left, values, Reals()), evaluate(right, values, Reals())
    scale = 1.0 + max(float(np.max(np.abs(x[np.isfinite(x)]), initial=0.0)) for x in (a, b))
    with np.errstate(invalid="ignore"):
        same = (np.abs(a - b) <= TOLERANCE * scale) | (~np.isfinite(a) & ~np.isfinite(b))
    if np.all(same):
        return None
    place = tuple(int(k) for k in np.argwhere(~same)[0])
    return f"{list(place)} is {a[place]:g} on the left and {b[place]:g} on the right"


def _poison(rule: Rule, values: dict[str, Array], rng: np.random.Generator) -> None:
    """NaN in one place of one input that holds numbers."""
    candidates = [g.name for g in rule.given if g.kind == "tensor" and values[g.name].size]
    if not candidates:
        raise _Skip
    chosen = values[candidates[int(rng.integers(len(candidates)))]]
    chosen.flat[int(rng.integers(chosen.size))] = np.nan


def _lost(left: Tensor, right: Tensor, values: Mapping[str, Array]) -> str | None:
    a, b = evaluate(left, values, Reals()), evaluate(right, values, Reals())
    lost = np.isnan(a) & ~np.isnan(b)
    if not lost.any():
        return None
    return f"{[int(k) for k in np.argwhere(lost)[0]]} is NaN on the left and not on the right"
