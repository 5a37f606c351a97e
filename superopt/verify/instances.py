"""A rule at small random sizes and values, evaluated step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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

TRIES_FOR_EACH = 25
SMALL, LARGE = 4, 9
"""The largest size that is drawn, and every other time where nothing is legal among the first: filters of 2h + 1."""
TRIES_OF_SMALL = 24
TRIES_OF_ONE_KIND = 48
"""After so many that all fail alike, as the smallest sizes do: no sizes are legal for that number of axes."""
MOST_ELEMENTS = 1 << 18


class Skip(Exception):
    """This draw says nothing."""


@dataclass
class Numbers:
    """Unknowns as random numbers."""

    rng: np.random.Generator
    values: dict[str, Array]
    drawn: dict[str, Any]
    reals: float | None = None
    """What every number given by name is, if it is not drawn."""
    most: int = SMALL
    """The largest size."""

    def positive(self, name: str) -> int:
        self.drawn[name] = int(self.rng.integers(1, self.most + 1))
        return self.drawn[name]

    def natural(self, name: str) -> int:
        self.drawn[name] = int(self.rng.integers(0, 4))
        return self.drawn[name]

    def real(self, name: str) -> Any:
        self.values[name] = np.asarray(draw(self.rng, ()) if self.reals is None else self.reals)
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


def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Integers show order and zeros, fractions everything else."""
    if rng.random() < 0.5:
        return rng.integers(-3, 4, shape).astype(np.float64)
    return rng.standard_normal(shape) * 2


class Smallest(Numbers):
    """Unknowns as small as they can be."""

    def positive(self, name: str) -> int:
        return 1

    def natural(self, name: str) -> int:
        return 0

    def choose(self, count: int) -> int:
        return 0


@dataclass(frozen=True)
class Instance:
    """A rule whose left side is legal for these numbers."""

    program: Program
    numbers: Numbers
    left: dict[str, Tensor]
    scaled: Callable[[float], Instance]
    """The same instance with its values multiplied."""

    @property
    def sizes(self) -> str:
        return ", ".join(f"{k}={v}" for k, v in self.numbers.drawn.items())

    def right(self) -> dict[str, Tensor]:
        """Raises `Illegal` where the right side is not legal."""
        return self.program.run(self.program.rule.right)

    def value(self, tensor: Tensor) -> Array:
        return evaluate(tensor, self.numbers.values, Reals())


def instances(
    rule: Rule,
    registry: Registry,
    *,
    wanted: int,
    seed: int = 0,
    poisoned: str | None = None,
    poison: float = np.nan,
    reals: float | None = None,
) -> Iterator[Instance]:
    """Instances for each number of axes of the rule's blocks, `wanted` of each where that many are found.

    `poisoned` names an input that gets a NaN, or another `poison`, in one place; `reals` is what every number given by
    name is, instead of any.
    """
    for ranks in block_ranks(rule):
        found, reasons = 0, set[str]()
        for attempt in range(wanted * TRIES_FOR_EACH):
            seeds = [seed, attempt, *ranks.values()]
            try:
                most = SMALL if found or attempt < TRIES_OF_SMALL or attempt % 2 else LARGE
                yield _instance(rule, registry, ranks, seeds, poisoned, poison=poison, reals=reals, most=most)
            except (Skip, Impossible, Unsupported, Illegal, NotCovered, ZeroDivisionError) as error:
                reasons.add(str(error) if isinstance(error, Illegal) else "")
                hopeless = not found and attempt + 1 == TRIES_OF_ONE_KIND and len(reasons) == 1
                if hopeless and _why_not(rule, registry, ranks) in reasons:
                    break
                continue
            found += 1
            if found == wanted:
                break


def _why_not(rule: Rule, registry: Registry, ranks: Mapping[str, int]) -> str | None:
    """What makes the left side illegal even at the smallest sizes: with the number of axes, most likely."""
    program = Program(rule, registry, Smallest(np.random.default_rng(0), {}, {}))
    try:
        program.start(ranks)
        program.run(rule.left)
    except Illegal as error:
        return str(error)
    except (Impossible, Unsupported, NotCovered):
        return None
    return None


def _instance(
    rule: Rule, registry: Registry, ranks: Mapping[str, int], seeds: list[int], poisoned: str | None,
    scale: float = 1.0, poison: float = np.nan, reals: float | None = None, most: int = SMALL,
) -> Instance:  # fmt: skip
    rng = np.random.default_rng(seeds)
    numbers = Numbers(rng, {}, {}, reals, most)
    values = numbers.values

    def keep(name: str, tensor: Tensor) -> Tensor:
        shape = tuple(int(n) for n in tensor.shape)  # pyright: ignore[reportArgumentType]
        if any(n < 0 for n in shape) or np.prod(shape, dtype=np.int64) > MOST_ELEMENTS:
            raise Skip
        if tensor.rank == 0 and not name:
            return tensor
        key = f"{name}#{len(values)}"
        values[key] = evaluate(tensor, values, Reals())
        return sized(shape, key)

    program = Program(rule, registry, numbers, keep)
    program.start(ranks)
    for given in rule.given:
        if given.kind in ("tensor", "bool"):
            shape = tuple(int(n) for n in program.inputs[given.name].shape)  # pyright: ignore[reportArgumentType]
            drawn = draw(rng, shape) * scale
            values[given.name] = (drawn > 0).astype(np.float64) if given.kind == "bool" else drawn
    if poisoned is not None:
        if not values[poisoned].size:
            raise Skip
        values[poisoned].flat[int(rng.integers(values[poisoned].size))] = poison
    left = program.run(rule.left)
    program.refuse_unused_conditions()

    def scaled(by: float) -> Instance:
        return _instance(rule, registry, ranks, seeds, poisoned, by, poison, reals, most)

    return Instance(program, numbers, left, scaled)
