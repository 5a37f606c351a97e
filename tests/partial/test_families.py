"""Every family on random programs: where mutants are wrong, and that what comes out of them is right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from superopt.ops.domains import Ordered, Reals
from superopt.ops.evaluate import Unsupported
from superopt.partial.corrected import attempted, corrections, described_again, mutants
from superopt.partial.differ import wrong
from superopt.partial.program import GivenUp, Mutant, shapes
from superopt.partial.proofs import Proofs
from superopt.partial.running import run_both
from superopt.rewrite.ruleset import state
from superopt.rewrite.text import format_rule, parse_rules
from tests.partial.programs import DRAWN, REGISTRY

pytestmark = pytest.mark.smt

WRONG = ("canvas", "tiles", "stacked", "enumerated")
"""Families with mutants that need mending."""


def some_mutants(name: str, seed: int, most: int = 1) -> Iterator[Mutant]:
    """Mutants of the first few programs that have any, at random."""
    family, draw = DRAWN[name]
    rng = np.random.default_rng([seed, *name.encode()])
    for _ in range(50):
        original = draw(rng)
        found = list(family(original, shapes(original, REGISTRY), REGISTRY))
        if found:
            for k in rng.permutation(len(found))[:most]:
                yield found[int(k)]
            return
    pytest.fail(f"no program that {name} makes anything of")


def assert_boxes_are_exact(mutant: Mutant, seed: int) -> None:
    """They hold the positions that differ for some small integers, and no others."""
    found = wrong(mutant, REGISTRY)
    rng = np.random.default_rng(seed)
    seen = {name: np.zeros(shape, bool) for name, shape in found.shapes.items()}
    for _ in range(8):
        left, right = run_both(mutant.rule, found.sizes, REGISTRY, Ordered(), lambda s, _: rng.integers(-9, 10, s))
        for name in seen:
            seen[name] |= left[name] != right[name]
    for name, mask in seen.items():
        told = np.zeros_like(mask)
        for box in found.boxes[name]:
            told[box.slices] = True
        np.testing.assert_array_equal(told, mask)


def unsure(name: str) -> AbstractContextManager[None]:
    """The prover need not be able to tell what becomes of programs that nobody thought of."""
    return suppress(GivenUp) if name == "enumerated" else nullcontext()


def assert_corrected(mutant: Mutant, proofs: Proofs, seed: int) -> bool:
    """What comes out equals the original, in integers and in floats, at the program's own sizes."""
    told: list[tuple[str, str]] = []
    found = list(corrections(mutant, proofs, share=1.0, tell=lambda kind, text: told.append((kind, text))))
    assert not [text for kind, text in told if kind == "bug"], told
    fine = ("unknown", "could not be proved", "depends on the size of an axis")
    assert all(any(reason in text for reason in fine) for _, text in told), told
    rng, sizes = np.random.default_rng(seed), mutant.original.sizes
    for corrected in found:
        assert state(corrected.rule, REGISTRY) == "proved"
        with suppress(Unsupported):  # of a sigmoid there are no integers
            left, right = run_both(corrected.rule, sizes, REGISTRY, Ordered(), lambda s, _: rng.integers(-9, 10, s))
            for name in left:
                np.testing.assert_array_equal(left[name], right[name])
        left, right = run_both(corrected.rule, sizes, REGISTRY, Reals(), lambda s, _: rng.standard_normal(s))
        for name in left:
            np.testing.assert_allclose(left[name], right[name], rtol=1e-9, atol=1e-9)
    return bool(found)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", WRONG)
def test_boxes_are_exactly_what_is_wrong(name: str, seed: int) -> None:
    for mutant in some_mutants(name, seed, most=3):
        with unsure(name):
            assert_boxes_are_exact(mutant, seed)


@pytest.mark.parametrize("name", DRAWN)
def test_mutants_are_mended_and_proved(name: str) -> None:
    proofs = Proofs(REGISTRY, seconds=60)
    done = [assert_corrected(m, proofs, seed) for seed in (0, 1) for m in some_mutants(name, seed)]
    assert any(done)


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_said_of_a_mutant_is_said_again_of_its_text(name: str) -> None:
    """Of the program that it was made of, and of no other."""
    family, draw = DRAWN[name]
    rng = np.random.default_rng([1, *name.encode()])
    tried = 0
    while tried < 3:
        original, other = draw(rng), draw(rng)
        found = list(islice(mutants(original, REGISTRY, (family,)), 2))
        for attempt in (attempt for mutant in found for attempt in attempted(mutant, REGISTRY, share=1.0)):
            told = replace(attempt.rule, name="m", origin=f"partial {attempt.mutant.family}")
            (read,) = parse_rules(format_rule(told))
            assert list(described_again(read, [other, original], REGISTRY)) == [told.doc]
            assert not list(described_again(read, [other], REGISTRY))
            tried += 1


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 300))
@pytest.mark.parametrize("name", WRONG)
def test_boxes_of_hundreds_of_programs(name: str, seed: int) -> None:
    for mutant in some_mutants(name, seed, most=2):
        with unsure(name):
            assert_boxes_are_exact(mutant, seed)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 200))
@pytest.mark.parametrize("name", DRAWN)
def test_hundreds_of_mutants_are_mended_and_proved(name: str, seed: int) -> None:
    for mutant in some_mutants(name, seed):
        assert_corrected(mutant, Proofs(REGISTRY, seconds=20), seed)
