# pyright: basic
"""A constant may be what a rule writes as a Concat of one input with itself: folding leaves the constant alone."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.rewrite.rewriter import Rules
from superopt.rewrite.text import parse_rules
from tests.rewrite.small import every_way, model, numbers
from tests.rewrite.taking import REGISTRY

pytestmark = pytest.mark.ort

HALF = numbers(5, 4)
OTHER = np.where(np.arange(20).reshape(5, 4) == 13, 9, HALF).astype(np.float32)
NOT_A_NUMBER = np.where(np.arange(20).reshape(5, 4) == 13, np.nan, HALF).astype(np.float32)


def fires(constant: np.ndarray) -> bool:
    (rule,) = parse_rules(
        "rule twice\n  given x: [b, n, 2*m]  c: [n, m]\n  y = Mul(x, Concat(c, c, axis=1))\n"
        "  =>\n  y = Mul(Concat(c, c, axis=1), x)"
    )
    data = model("g (float[2, 5, 8] x) => (float[2, 5, 8] y) { y = Mul(x, c) }", c=constant)
    return bool(every_way(data, {"x": numbers(2, 5, 8)}, Rules([rule], REGISTRY)))


def test_halves_of_a_constant_that_are_equal_are_one_input() -> None:
    assert fires(np.concatenate([HALF, HALF], 1))
    assert fires(np.concatenate([HALF, HALF], 1)[None, :, :])


@pytest.mark.parametrize(
    "constant",
    [
        np.concatenate([HALF, OTHER], 1),
        np.concatenate([HALF, -HALF], 1),
        np.repeat(HALF, 2, 1),
        np.concatenate([NOT_A_NUMBER, NOT_A_NUMBER], 1),
        np.concatenate([numbers(1, 4), numbers(1, 4)], 1),
    ],
    ids=["one number differs", "the other sign", "pairs side by side", "no numbers", "fewer rows"],
)
def test_other_constants_are_not(constant: np.ndarray) -> None:
    assert not fires(constant)


def test_what_is_known_only_at_run_time_is_not() -> None:
    (rule,) = parse_rules(
        "rule twice\n  given x: [n, 2*m]  c: [n, m]\n  y = Mul(x, Concat(c, c, axis=1))\n"
        "  =>\n  y = Mul(Concat(c, c, axis=1), x)"
    )
    data = model("g (float[5, 8] x, float[5, 8] c) => (float[5, 8] y) { y = Mul(x, c) }")
    feeds = {"x": numbers(5, 8), "c": np.concatenate([HALF, HALF], 1)}
    assert not every_way(data, feeds, Rules([rule], REGISTRY))
