"""A NaN that the left side passes on and the right side does not: refuted, in inputs of any number of axes."""

from __future__ import annotations

import pytest

from superopt.verify.lost import find_lost_nan
from tests.verify.sides import REGISTRY, rule, verdict

pytestmark = pytest.mark.unit

SHIFTED = """
    given x: [m, n]  s: {}
    y = Softmax(Add(x, s), axis=1)
    =>
    y = Softmax(x, axis=1)"""


@pytest.mark.parametrize("shape", ["[]", "[1]", "[m, 1]"])
def test_a_shift_that_drops_out_takes_its_nan_along(shape: str) -> None:
    assert find_lost_nan(rule(SHIFTED.format(shape)), REGISTRY) == "s"
    found = verdict(SHIFTED.format(shape))
    assert found.status == "refuted"
    assert "`where finite` is missing: a NaN in s" in found.reason


@pytest.mark.parametrize("shape", ["[]", "[1]", "[m, 1]"])
def test_a_weight_that_is_known_to_be_finite_has_none(shape: str) -> None:
    text = SHIFTED.format(f"finite{shape}")
    assert find_lost_nan(rule(text), REGISTRY) is None
    assert verdict(text).status == "proved"


def test_what_stays_where_it_is_loses_nothing() -> None:
    moved = "given x: [m, n]  s: []\n y = Neg(Add(x, s))\n =>\n y = Sub(Neg(x), s)"
    assert find_lost_nan(rule(moved), REGISTRY) is None


@pytest.mark.parametrize(
    ("shape", "left", "right", "lost"),
    [
        ("[]", "Max(x, s)", "Clip(x, s)", "s"),
        ("[]", "Clip(Clip(x, s), s)", "Clip(x, s)", None),
        ("[m, n]", "Mul(s, Relu(Sign(Sub(s, x))))", "Mul(s, Relu(Sign(Sub(s, x))))", None),
        ("[m, n]", "Mul(s, Relu(Sign(s)))", "ThresholdedRelu(s, alpha=0)", "s"),
    ],
)
def test_kernels_that_hide_a_nan_lose_it(shape: str, left: str, right: str, lost: str | None) -> None:
    """Where they are on the right alone, whatever the formula says."""
    text = f"given x: [m, n]  s: {shape}\n y = Add({left}, x)\n =>\n y = Add({right}, x)"
    assert find_lost_nan(rule(text), REGISTRY) == lost
