"""Where two programs agree, for all inputs: boxes of output positions, each with its proof.

Exact arithmetic on random inputs shows where the outputs differ; what is left is cut into boxes, and each is proved. A
box that cannot be proved counts as one where they differ: too small an agreement costs time, never truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from superopt.ops.condition import deciding
from superopt.ops.domains import PRIME, Field, Ordered, Reals
from superopt.ops.evaluate import Array, Domain, Unsupported, evaluate
from superopt.ops.formula import Tensor
from superopt.verify.equal import equal
from superopt.verify.expand import Inexpressible, expand
from superopt.verify.facts import Facts
from superopt.verify.paths import Path
from superopt.verify.witness import output_index

DRAWS = 3


@dataclass(frozen=True)
class Box:
    """Positions from `start` up to but not including `stop`, on every axis."""

    start: tuple[int, ...]
    stop: tuple[int, ...]

    @property
    def count(self) -> int:
        return int(np.prod([b - a for a, b in zip(self.start, self.stop, strict=True)], dtype=np.int64))

    @property
    def slices(self) -> tuple[slice, ...]:
        return tuple(slice(a, b) for a, b in zip(self.start, self.stop, strict=True))


@dataclass(frozen=True)
class Agreement:
    same: tuple[Box, ...]
    """Proved equal for all inputs."""
    different: tuple[Box, ...]
    """The rest, as boxes: shown to differ, or not proved."""
    unproved: tuple[Box, ...] = ()
    """What of the rest agrees by numbers, and was not proved."""

    @property
    def everywhere(self) -> bool:
        return not self.different


def agree(left: Tensor, right: Tensor, inputs: Mapping[str, tuple[int, ...]], *, seed: int = 0) -> Agreement:
    """Both tensors have one shape of concrete sizes; `inputs` gives the shapes of what they read."""
    shape = tuple(int(n) for n in left.shape)  # pyright: ignore[reportArgumentType]
    if shape != tuple(right.shape):
        raise ValueError(f"shapes differ: {list(shape)} and {list(right.shape)}")
    like = np.ones(shape, bool)
    for draw in range(DRAWS):
        like &= _alike(left, right, inputs, np.random.default_rng([seed, draw]))
    proved: list[Box] = []
    unproved: list[Box] = []
    different = ~like
    for box in boxes(like):
        if _proved(left, right, box):
            proved.append(box)
        else:
            unproved.append(box)
            different[box.slices] = True
    return Agreement(tuple(proved), tuple(boxes(different)), tuple(unproved))


def _alike(left: Tensor, right: Tensor, inputs: Mapping[str, tuple[int, ...]], rng: np.random.Generator) -> Array:
    attempts: tuple[tuple[Domain, Callable[[tuple[int, ...]], Array]], ...] = (
        (Field(), lambda s: rng.integers(0, PRIME, s)),
        (Ordered(), lambda s: rng.integers(-9, 10, s)),
        (Reals(), lambda s: rng.standard_normal(s)),
    )
    for domain, draw in attempts:
        values: dict[str, Any] = {name: np.asarray(draw(s)) for name, s in inputs.items()}
        try:
            a, b = evaluate(left, values, domain), evaluate(right, values, domain)
        except Unsupported:
            continue
        return np.isclose(a, b, rtol=1e-9, atol=1e-9) if isinstance(domain, Reals) else a == b
    raise Unsupported("no arithmetic knows all functions in these programs")


def _proved(left: Tensor, right: Tensor, box: Box) -> bool:
    place = tuple(output_index(k) for k in range(len(box.start)))
    bounds = [c for i, a, b in zip(place, box.start, box.stop, strict=True) for c in (i >= a, i < b)]
    path = Path(Facts(()).and_(*bounds), [])
    try:
        with deciding(path.decide):
            a, b = expand(left[place], path.facts), expand(right[place], path.facts)
            return not path.taken and equal(a, b, path.facts)
    except Inexpressible:
        return False


def boxes(mask: Array) -> list[Box]:
    """The true positions as boxes that do not overlap, each grown as far as it goes from its first corner."""
    left = mask.copy()
    found: list[Box] = []
    while left.any():
        start = tuple(int(k) for k in np.argwhere(left)[0])
        stop = [k + 1 for k in start]
        for axis in reversed(range(left.ndim)):
            while stop[axis] < left.shape[axis]:
                further = tuple(
                    slice(stop[k], stop[k] + 1) if k == axis else slice(start[k], stop[k]) for k in range(left.ndim)
                )
                if not left[further].all():
                    break
                stop[axis] += 1
        box = Box(start, tuple(stop))
        left[box.slices] = False
        found.append(box)
    return found
