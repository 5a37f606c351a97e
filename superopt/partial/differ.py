"""Where a mutant is wrong: exact boxes, found twice.

The prover tells where both programs agree for all inputs. Independently of it both are run, step by step, on random
numbers of a prime field: a position at which two multilinear programs differ shows it in all but one draw in a billion.
Where the two ways do not tell the same, one of them has a bug, and the mutant is not to be used; nor is it where the
prover cannot tell.

Both look at the program with its symbols as small numbers: what is wrong does not depend on them, or the mended program
will not be proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from superopt.ops.domains import PRIME, Field, Ordered, Reals
from superopt.ops.evaluate import Array, Domain, Unsupported
from superopt.ops.registry import Registry
from superopt.partial.program import GivenUp, Mutant, Original, Shape, instance, shape_of
from superopt.partial.running import Draw, run_both, work
from superopt.rewrite.rule import Rule
from superopt.verify.agree import Agreement, Box, agree, boxes

DRAWS = 3
SMALL = 2
"""What a symbol stands for while positions are compared, if that does not make too much work; 1 else."""
FEW_READ, MANY_READ = 1 << 23, 1 << 27
"""Numbers read in one run up to which symbols are larger than 1, and up to which a mutant is looked at."""


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


def wrong(mutant: Mutant, registry: Registry, *, seed: int = 0) -> Wrong:
    """Raises `Disagreement` where prover and test differ."""
    rule, found = mutant.rule, seen_wrong(mutant, registry, seed=seed)
    if any(found.boxes.values()):
        program = instance(rule, found.sizes, registry)
        left, right = program.run(rule.left), program.run(rule.right)
        inputs = {name: shape_of(tensor) for name, tensor in program.inputs.items()}
        for name, seen in found.boxes.items():
            if seen:
                _confirm(name, agree(left[name], right[name], inputs, seed=seed), _mask(seen, found.shapes[name]))
    return found


def seen_wrong(mutant: Mutant, registry: Registry, *, seed: int = 0) -> Wrong:
    """By the test alone, which needs no prover."""
    sizes = sample(mutant, registry)
    seen = differing(mutant.rule, sizes, registry, seed=seed)
    shapes = {name: mask.shape for name, mask in seen.items()}
    return Wrong({name: tuple(boxes(mask)) for name, mask in seen.items()}, shapes, sizes)


def _confirm(name: str, found: Agreement, seen: Array) -> None:
    told = _mask(found.different, seen.shape) & ~_mask(found.unproved, seen.shape)
    if (told != seen).any():
        place = tuple(int(k) for k in np.argwhere(told != seen)[0])
        raise Disagreement(f"{name}{list(place)} is {'wrong' if seen[place] else 'right'} by test, not by proof")
    if found.unproved:
        raise GivenUp(f"{name} is right in a part where that could not be proved")


def _mask(inside: Iterable[Box], shape: Shape) -> Array:
    found = np.zeros(shape, bool)
    for box in inside:
        found[box.slices] = True
    return found


def sample(mutant: Mutant, registry: Registry) -> dict[str, int]:
    """Small numbers for the symbols of the mutant."""
    for most in (SMALL, 1):
        sizes = {name: min(most, n) for name, n in mutant.original.sizes.items()}
        read = work(Original(mutant.rule.given, mutant.rule.left, sizes), registry)
        if read <= (FEW_READ if most > 1 else MANY_READ):
            return sizes
    raise GivenUp(f"too large to be looked at: {read:.1e} numbers would be read")


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
