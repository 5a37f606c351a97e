"""Does a rule trade a computation that is safe in floating point for one that is not?

Proofs are about real numbers, for which e^x of a large x, or the difference of two large numbers, is like any other.
Here both sides are computed operator by operator, each result rounded to float32 as a good kernel would, on inputs that
are large, small or far from zero: where the left side is finite and exact, the right side must be so too. And what is
cast to a wider type was cast for a reason: which kernels compute in that type by themselves no machine can know here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from superopt.ops.domains import Reals
from superopt.ops.evaluate import Array, Unsupported, evaluate, sized
from superopt.ops.formula import Illegal, NotCovered, Tensor
from superopt.ops.registry import Registry
from superopt.rewrite.program import Impossible, Program, block_ranks
from superopt.rewrite.rule import Rule, Step, calls_of
from superopt.verify.drawing import Numbers, draw, of_kind

RANGES = ((60.0, 0.0), (1.0, 100.0), (1.0, -100.0), (1.0, 1000.0), (1e-6, 0.0), (1e4, 0.0))
"""Inputs times the first, plus the second."""
PRECISION = 1e-3
WANTED = 3
"""Sizes tried for each number of axes."""
TRIES = 40
MOST_ELEMENTS = 1 << 14

Results = dict[str, Array]
Sides = Callable[[float, float, bool], "tuple[Results, Results] | None"]
"""Both sides with inputs times a number plus another; rounded or not. None where that cannot be."""


def trades_safety(rule: Rule, registry: Registry) -> bool:
    """Whether the right side overflows, or loses more than three digits, where the left side does not."""
    if _widens(rule.left) and not _widens(rule.right):
        return True
    for sides in _draws(rule, registry):
        for scale, shift in RANGES:
            exact, single = sides(scale, shift, False), sides(scale, shift, True)
            if exact is None or single is None or not _is_near(single[0], exact[0]):
                continue
            if not _is_finite(exact[1]):  # a formula that a kernel would not follow so far, as of Softmax
                continue
            if not _is_near(single[1], exact[0]):
                return True
    return False


def _widens(side: Iterable[Step]) -> bool:
    return any(call.casts("wider") for call in calls_of(side))


def _draws(rule: Rule, registry: Registry) -> Iterator[Sides]:
    """The rule at some sizes at which its right side is finite."""
    for ranks in block_ranks(rule):
        found = 0
        for attempt in range(TRIES):

            def sides(
                scale: float, shift: float, rounded: bool, attempt: int = attempt, ranks: Mapping[str, int] = ranks
            ) -> tuple[Results, Results] | None:
                drawn = _Drawn(rule, registry, ranks, attempt, scale, shift, rounded)
                try:
                    return drawn.sides()
                except (Impossible, Unsupported, Illegal, NotCovered):
                    return None

            plain = sides(1.0, 0.0, False)
            if plain is not None and _is_finite(plain[1]):
                yield sides
                found += 1
            if found == WANTED:
                break


@dataclass(frozen=True)
class _Drawn:
    rule: Rule
    registry: Registry
    ranks: Mapping[str, int]
    seed: int
    scale: float
    shift: float
    rounded: bool

    def sides(self) -> tuple[Results, Results]:
        rng = np.random.default_rng([self.seed, *self.ranks.values()])
        numbers = Numbers(rng, {}, {})
        values = numbers.values

        def keep(name: str, tensor: Tensor) -> Tensor:
            shape = tuple(int(n) for n in tensor.shape)  # pyright: ignore[reportArgumentType]
            if any(n < 0 for n in shape) or np.prod(shape, dtype=np.int64) > MOST_ELEMENTS:
                raise Impossible("too large")
            if tensor.rank == 0 and not name:
                return tensor
            key = f"{name}#{len(values)}"
            values[key] = self._stored(evaluate(tensor, values, Reals()))
            return sized(shape, key)

        program = Program(self.rule, self.registry, numbers, keep)
        program.start(dict(self.ranks))
        for given in self.rule.given:
            if given.is_tensor:
                shape = tuple(int(n) for n in program.inputs[given.name].shape)  # pyright: ignore[reportArgumentType]
                drawn = draw(rng, shape)
                moved = of_kind(given, drawn if given.kind == "bool" else drawn * self.scale + self.shift)
                values[given.name] = moved.astype(np.float32).astype(np.float64)
        left, right = (program.run(side) for side in (self.rule.left, self.rule.right))
        return self._read(left, values), self._read(right, values)

    def _read(self, side: Mapping[str, Tensor], values: Mapping[str, Array]) -> Results:
        return {name: self._stored(evaluate(side[name], values, Reals())) for name in self.rule.results}

    def _stored(self, value: Array) -> Array:
        if not self.rounded or value.dtype != np.float64:
            return value
        with np.errstate(over="ignore"):
            return value.astype(np.float32).astype(np.float64)


def _is_finite(results: Results) -> bool:
    return all(np.isfinite(a).all() for a in results.values())


def _is_near(found: Results, meant: Results) -> bool:
    if not _is_finite(found) or not _is_finite(meant):
        return False
    for name, a in meant.items():
        largest = np.max(np.abs(a), initial=1e-30)
        if np.max(np.abs(a - found[name]), initial=0.0) > PRECISION * largest:
            return False
    return True
