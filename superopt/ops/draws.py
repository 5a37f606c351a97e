"""Random legal operands, for the laws every operator is held to. `rng` is a numpy Generator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from superopt.ops.registry import Draw


def size(rng: Any, low: int = 1, high: int = 5) -> int:
    return int(rng.integers(low, high + 1))


def shape(rng: Any, low_rank: int = 0, high_rank: int = 4, *, empty: bool = True) -> tuple[int, ...]:
    """Small sizes, 1 often, 0 now and then."""
    rank = int(rng.integers(low_rank, high_rank + 1))
    dims = [1 if rng.random() < 0.2 else size(rng) for _ in range(rank)]
    if empty and rank and rng.random() < 0.05:
        dims[int(rng.integers(rank))] = 0
    return tuple(dims)


def unary(rng: Any) -> Draw:
    return Draw((shape(rng),))


def broadcasting(count: int) -> Callable[[Any], Draw]:
    """`count` operands that broadcast together: leading axes missing, sizes of 1."""

    def draw(rng: Any) -> Draw:
        full = shape(rng, 1, 4)
        shapes = [
            tuple(1 if rng.random() < 0.25 else n for n in full)[int(rng.integers(len(full) + 1)) :]
            for _ in range(count)
        ]
        shapes[int(rng.integers(count))] = full
        return Draw(tuple(shapes))

    return draw


def whole(draw: Callable[[Any], Draw]) -> Callable[[Any], Draw]:
    """The same operands, of integers now and then, for operators that take them too."""

    def sometimes(rng: Any) -> Draw:
        found = draw(rng)
        if rng.random() < 0.7:
            return found
        return replace(found, values=lambda rng, shape: rng.integers(-9, 10, shape))

    return sometimes


def axis(rng: Any, rank: int) -> int:
    """Counted from either end."""
    return int(rng.integers(-rank, rank))


def pick(rng: Any, *choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def axes(rng: Any, rank: int, *, least: int = 0) -> list[int]:
    """Distinct axes, in any order, each counted from either end."""
    count = int(rng.integers(least, rank + 1)) if rank >= least else 0
    chosen = rng.permutation(rank)[:count].tolist()
    return [int(a) - rank if rng.random() < 0.5 else int(a) for a in chosen]
