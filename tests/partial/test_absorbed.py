# pyright: basic
"""What mending adds is taken in by its neighbours: rules that ship do it, and a search finds them."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.partial.corrected import corrections
from superopt.partial.families import Family, rounded, tiles
from superopt.partial.lift import originals
from superopt.partial.program import shapes
from superopt.partial.proofs import Proofs
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rules
from superopt.search.explore import Limits, explore
from tests.partial.programs import REGISTRY
from tests.rewrite.small import model, numbers
from tests.rewrite.taking import RULES, Opened, difference, opened, run

pytestmark = [pytest.mark.ort, pytest.mark.smt]


def operators(piece: Piece) -> list[str]:
    return [node.op for node in piece.members]


def weighed(piece: Piece) -> float:
    """A convolution costs as much as ten others."""
    return sum(10 if op == "Conv" else 1 for op in operators(piece))


def mutated(data: bytes, family: Family) -> tuple[Opened, Piece]:
    """The model with the family's first mutant in it, mended by slices and joins."""
    start = opened(data)
    (program, *_) = originals(start.piece, start.rewriter)
    mutant = next(family(program, shapes(program, REGISTRY), REGISTRY))
    found = next(corrections(mutant, Proofs(REGISTRY), share=1.0))
    (match, *_) = start.matches(start.piece, Rules([found.rule], REGISTRY))
    return start, start.take(start.piece, match)


def searched(start: Opened, piece: Piece) -> Piece:
    limits = Limits(1.05, 150, lambda: False)
    found = explore(piece, RULES, start.rewriter, weighed, limits)
    return min(found.candidates, key=lambda c: c.cost).piece


def assert_same(data: bytes, start: Opened, piece: Piece, *shape: int) -> None:
    feeds = {"x": numbers(*shape)}
    assert not difference(run(data, feeds, optimized=False), run(start.exported(piece), feeds, optimized=False))


def test_what_was_filled_up_and_cut_back_goes_into_the_window() -> None:
    data = model(
        "g (float[1, 2, 7, 9] x) => (float[1, 3, 7, 9] y) "
        "{ y = Conv<pads=[2, 1, 2, 1], dilations=[2, 1]>(x, k, b) }",
        k=numbers(3, 2, 3, 3), b=numbers(3),
    )  # fmt: skip
    start, piece = mutated(data, rounded)
    assert operators(piece) == ["Pad", "Conv", "Slice"]
    (absorbed,) = [
        start.take(piece, found)
        for found in start.matches(piece)
        if found[0].pattern.rule.name == "pad-into-conv-biased"
    ]
    assert operators(absorbed) == ["Conv", "Slice"]
    assert_same(data, start, absorbed, 1, 2, 7, 9)
    best = searched(start, piece)
    assert operators(best) == ["Conv"]
    assert_same(data, start, best, 1, 2, 7, 9)


def test_a_reader_of_rows_that_are_right_needs_no_mending() -> None:
    """A slice of a join picks its operand, a slice of a slice is one slice, and nobody reads what was recomputed."""
    data = model(
        "g (float[1, 2, 12, 5] x) => (float[1, 3, 4, 5] y) { c = Conv<pads=[1, 1, 1, 1]>(x, k) y = Slice(c, s, e, a) }",
        k=numbers(3, 2, 3, 3), s=np.array([1]), e=np.array([5]), a=np.array([2]),
    )  # fmt: skip
    start, piece = mutated(data, tiles)
    assert operators(piece).count("Conv") == 2
    for rule in ("slice-within-first-of-three", "slice-of-slice-along-an-axis"):
        (piece,) = [start.take(piece, m) for m in start.matches(piece) if m[0].pattern.rule.name == rule]
    assert operators(piece).count("Conv") == operators(piece).count("Slice") == 1
    assert_same(data, start, piece, 1, 2, 12, 5)


def test_neighbours_crop_their_input_instead_of_their_result() -> None:
    """The rows that a slice takes of a convolution are all that it computes; what it pads stays padding."""
    data = model(
        "g (float[1, 2, 12, 5] x) => (float[1, 3, 4, 5] y) { c = Conv<pads=[1, 1, 1, 1]>(x, k) y = Slice(c, s, e, a) }",
        k=numbers(3, 2, 3, 3), s=np.array([0]), e=np.array([4]), a=np.array([2]),
    )  # fmt: skip
    start = opened(data)
    piece = start.piece
    for rule in ("slice-rows-of-conv", "crop-behind-border", "pad-into-conv"):
        (piece,) = [start.take(piece, m) for m in start.matches(piece) if m[0].pattern.rule.name == rule]
    assert operators(piece) == ["Slice", "Conv"]
    assert_same(data, start, piece, 1, 2, 12, 5)


def test_a_mask_joins_a_scale_that_is_there() -> None:
    """Of a scale by channel and two masks, as layers of a canvas have them, one product is left to the run."""
    mask = np.ones((1, 1, 7, 4), np.float32)
    mask[:, :, 3] = 0
    data = model(
        "g (float[1, 2, 7, 4] x) => (float[1, 2, 7, 4] y) { s = Mul(x, t) u = Mul(s, m) y = Mul(u, m) }",
        t=numbers(1, 2, 1, 1), m=mask,
    )  # fmt: skip
    start = opened(data)
    best = searched(start, start.piece)
    assert operators(best) == ["Mul"]
    assert_same(data, start, best, 1, 2, 7, 4)
