"""Where a mutant is wrong: exact boxes, found twice.

The prover tells where both programs agree for all inputs. Independently of it both are run, step by step, on random
numbers of a prime field: a position at which two multilinear programs differ shows it in all but one draw in a billion.
Where the two ways do not tell the same, one of them has a bug, and the mutant is not to be used; nor is it where the
prover cannot tell.

Both look at the program with its symbols as small numbers: what is wrong does not depend on them, or the mended program
will not be proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superopt.ops.domains import PRIME, Field, Ordered, Reals
from superopt.ops.evaluate import Array, Domain, Unsupported, evaluate, sized
from superopt.ops.formula import Tensor
from superopt.ops.registry import Registry
from superopt.partial.program import GivenUp, Mutant, Shape, instance, shape_of
from superopt.rewrite.rule import Rule, Step
from superopt.verify.agree import Box, agree

DRAWS = 3
SMALL = 2
"""What a symbol stands for while positions are compared, if that does not make too much work; 1 else."""
FEW_PRODUCTS, MANY_PRODUCTS = 4_000_000, 60_000_000
"""Products up to which symbols are larger than 1, and up to which a mutant is looked at."""

Draw = Callable[[Shape, str], Array]
"""Numbers for an input, by its shape and name."""


class Disagreement(Exception):
    """Prover and test do not find the same positions: a bug in one of them."""


@dataclass(frozen=True)
class Wrong:
    """The positions at which each result is wrong, at sample sizes."""

    boxes: Mapping[str, tuple[Box, ...]]
    shapes: Mapping[str, Shape]
    sizes: Mapping[str, int]

    @property
    def share(self) -> float:
        """Part of all elements that is wrong."""
        count = sum(box.count for found in self.boxes.values() for box in found)
        return count / sum(int(np.prod(s, dtype=np.int64)) for s in self.shapes.values())


def differing(rule: Rule, sizes: Mapping[str, int], registry: Registry, *, seed: int = 0) -> dict[str, Array]:
    """For each result, true where the sides were seen to differ on random inputs."""
    found: dict[str, Array] = {}
    for draw in range(DRAWS):
        left, right = _both(rule, sizes, registry, np.random.default_rng([seed, draw, 7]))
        for name in rule.results:
            different = _unlike(left[name], right[name])
            found[name] = found[name] | different if name in found else different
    return found


def _unlike(a: Array, b: Array) -> Array:
    return ~np.isclose(a, b, rtol=1e-9, atol=1e-9) if a.dtype.kind == "f" else a != b


def loses_nan(rule: Rule, registry: Registry, *, seed: int = 0) -> bool:
    """Whether a NaN somewhere in an input reaches the left side's results and not the right side's."""
    sizes = dict.fromkeys(rule.sizes, 1)
    for given in rule.given:
        rng = np.random.default_rng(seed)

        def poisoned(shape: Shape, name: str, wanted: str = given.name, rng: np.random.Generator = rng) -> Array:
            drawn = rng.standard_normal(shape)
            if name == wanted:
                drawn.flat[int(rng.integers(drawn.size))] = np.nan
            return drawn

        left, right = run_both(rule, sizes, registry, Reals(), poisoned)
        sides = [any(np.isnan(side[name]).any() for name in rule.results) for side in (left, right)]
        if sides[0] and not sides[1]:
            return True
    return False


def wrong(mutant: Mutant, registry: Registry, *, seed: int = 0) -> Wrong:
    """Raises `Disagreement` where prover and test differ."""
    rule = mutant.rule
    sizes = sample(mutant, registry)
    seen = differing(rule, sizes, registry, seed=seed)
    boxes: dict[str, tuple[Box, ...]] = dict.fromkeys(seen, ())
    shapes = {name: mask.shape for name, mask in seen.items()}
    if any(mask.any() for mask in seen.values()):
        program = instance(rule, sizes, registry)
        left, right = program.run(rule.left), program.run(rule.right)
        inputs = {name: shape_of(tensor) for name, tensor in program.inputs.items()}
        for name, mask in seen.items():
            boxes[name] = _boxes(name, left[name], right[name], inputs, mask, seed)
    return Wrong(boxes, shapes, sizes)


def _boxes(
    name: str, left: Tensor, right: Tensor, inputs: Mapping[str, Shape], seen: Array, seed: int
) -> tuple[Box, ...]:
    if not seen.any():
        return ()
    found = agree(left, right, inputs, seed=seed)
    told = np.zeros_like(seen)
    for box in found.different:
        told[box.slices] = True
    for box in found.unproved:
        told[box.slices] = False
    if (told != seen).any():
        place = tuple(int(k) for k in np.argwhere(told != seen)[0])
        raise Disagreement(f"{name}{list(place)} is {'wrong' if seen[place] else 'right'} by test, not by proof")
    if found.unproved:
        raise GivenUp(f"{name} is right in a part where that could not be proved")
    return found.different


def sample(mutant: Mutant, registry: Registry) -> dict[str, int]:
    """Small numbers for the symbols of the mutant."""
    for most in (SMALL, 1):
        sizes = {name: min(most, n) for name, n in mutant.original.sizes.items()}
        work = _products(mutant.rule, sizes, registry)
        if work <= (FEW_PRODUCTS if most > 1 else MANY_PRODUCTS):
            return sizes
    raise GivenUp(f"too large to be looked at: {work:.1e} products")


def _products(rule: Rule, sizes: Mapping[str, int], registry: Registry) -> int:
    """How many numbers are multiplied, at most: elements of a result by those that one of them reads of the weights."""
    program = instance(rule, sizes, registry)
    results = program.run(rule.left)
    kernel = min((_count(shape_of(t)[1:]) for t in program.inputs.values() if t.rank > 1), default=1)
    return sum(_count(shape_of(results[name])) for name in rule.results) * kernel


def _count(shape: Shape) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _both(
    rule: Rule, sizes: Mapping[str, int], registry: Registry, rng: np.random.Generator
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Values of both sides on the same numbers, in the first arithmetic that knows all their functions."""
    attempts: tuple[tuple[Domain, Draw], ...] = (
        (Field(), lambda s, _: rng.integers(0, PRIME, s)),
        (Ordered(), lambda s, _: rng.integers(-9, 10, s)),
        (Reals(), lambda s, _: rng.standard_normal(s)),
    )
    for domain, draw in attempts:
        try:
            return run_both(rule, sizes, registry, domain, draw)
        except Unsupported:
            continue
    raise Unsupported("no arithmetic knows all functions in these programs")


def run_both(
    rule: Rule, sizes: Mapping[str, int], registry: Registry, domain: Domain, draw: Draw
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The results of both sides, step by step, on the same numbers."""
    left, right = run(rule, (rule.left, rule.right), sizes, registry, domain, draw)
    return left, right


def run(
    rule: Rule,
    sides: Iterable[Sequence[Step]],
    sizes: Mapping[str, int],
    registry: Registry,
    domain: Domain,
    draw: Draw,
) -> list[dict[str, Array]]:
    """The results of some sides of a rule."""
    values: dict[str, Any] = {}

    def keep(name: str, tensor: Tensor) -> Tensor:
        key = f"{name}#{len(values)}"
        values[key] = evaluate(tensor, values, domain)
        return sized(values[key].shape, key)

    program = instance(rule, sizes, registry, keep)
    for name, tensor in program.inputs.items():
        values[name] = np.asarray(draw(shape_of(tensor), name))
    made = [program.run(side) for side in sides]
    return [{name: evaluate(side[name], values, domain) for name in rule.results} for side in made]
