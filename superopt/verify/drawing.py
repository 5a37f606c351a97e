"""A rule at one draw of small sizes, attributes and values, evaluated step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from superopt.ops.condition import Condition
from superopt.ops.domains import Reals
from superopt.ops.element import Access
from superopt.ops.evaluate import Array, Unsupported, evaluate, sized
from superopt.ops.formula import Illegal, NotCovered, Tensor
from superopt.ops.registry import Registry
from superopt.rewrite.program import Impossible, Program, RealFact
from superopt.rewrite.rule import Given, Rule

SMALL = 4
"""The largest size that is drawn, where nothing else is said."""
MOST_ELEMENTS = 1 << 18
LEAST_POSITIVE = 0.0625


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
    told: Mapping[str, int] = field(default_factory=dict[str, int])
    """Sizes, attributes and choices that are not drawn."""
    integers: dict[str, int] = field(default_factory=dict[str, int])
    """Every size, attribute and choice of this instance."""

    def positive(self, name: str) -> int:
        self.drawn[name] = self._integer(name, 1, self.most + 1)
        return self.drawn[name]

    def natural(self, name: str) -> int:
        self.drawn[name] = self._integer(name, 0, 4)
        return self.drawn[name]

    def _integer(self, name: str, least: int, end: int) -> int:
        self.integers[name] = self.told[name] if name in self.told else int(self.rng.integers(least, end))
        return self.integers[name]

    def real(self, name: str) -> Any:
        self.values[name] = np.asarray(draw(self.rng, ()) if self.reals is None else self.reals)
        self.drawn[name] = float(self.values[name])
        return Access(name, ())

    def choose(self, count: int) -> int:
        """Told are choices among as many."""
        return self._integer(f"choice {len(self.integers)} of {count}", 0, count)

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


def of_kind(given: Given, drawn: Array) -> Array:
    """What was drawn, as an input of its kind may be; one that can be written to, also where it has no axis."""
    if given.kind == "bool":
        return np.array(drawn > 0, dtype=np.float64)
    return np.array(np.abs(drawn) + LEAST_POSITIVE if given.kind == "positive" else drawn)


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


NOTHING_SAID = (Skip, Impossible, Unsupported, Illegal, NotCovered, ZeroDivisionError)
"""What a draw raises that makes no instance."""


@dataclass(frozen=True)
class Draws:
    """A rule for given numbers of axes, and what its draws have in common."""

    rule: Rule
    registry: Registry
    ranks: Mapping[str, int]
    poisoned: str | None = None
    """An input that gets the poison in one place."""
    poison: float = np.nan
    reals: float | None = None
    """What every number given by name is, if it is not drawn."""
    level: bool = False
    """Whether all elements of an input are the same: what is normalized has no variance."""

    def instance(
        self, seeds: list[int], *, most: int = SMALL, told: Mapping[str, int] | None = None, scale: float = 1.0
    ) -> Instance:
        """The instance of these seeds; raises one of `NOTHING_SAID` where that is none."""
        rng = np.random.default_rng(seeds)
        numbers = Numbers(rng, {}, {}, self.reals, most, told or {})
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

        program = Program(self.rule, self.registry, numbers, keep)
        program.start(self.ranks)
        for given in self.rule.given:
            if given.is_tensor:
                shape = tuple(int(n) for n in program.inputs[given.name].shape)  # pyright: ignore[reportArgumentType]
                drawn = np.full(shape, rng.standard_normal()) if self.level else draw(rng, shape)
                values[given.name] = of_kind(given, drawn * scale)
        if self.poisoned is not None:
            if not values[self.poisoned].size:
                raise Skip
            values[self.poisoned].flat[int(rng.integers(values[self.poisoned].size))] = self.poison
        left = program.run(self.rule.left)
        program.refuse_unused_conditions()
        return Instance(program, numbers, left, lambda by: self.instance(seeds, most=most, told=told, scale=by))

    def why_not(self) -> str | None:
        """What makes the left side illegal even at the smallest sizes: with the number of axes, most likely."""
        program = Program(self.rule, self.registry, Smallest(np.random.default_rng(0), {}, {}))
        try:
            program.start(self.ranks)
            program.run(self.rule.left)
        except Illegal as error:
            return str(error)
        except (Impossible, Unsupported, NotCovered):
            return None
        return None
