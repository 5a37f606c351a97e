"""The measure itself: what counts as equal, element by element."""

from __future__ import annotations

import math
from contextlib import closing
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from superopt.check.compare import compare, scale_of
from superopt.check.noise import Own, judge, moved
from superopt.check.randomness import summed_up, unlike
from superopt.check.shelf import Shelf
from superopt.check.tolerance import EXACT, TABLE, Rule, rule_of
from superopt.check.traits import Traits
from superopt.ir.types import DType
from tests.check.build import normal

pytestmark = pytest.mark.unit

FLOAT32 = TABLE[DType.FLOAT32]


def test_one_wrong_element_among_a_million_is_found() -> None:
    a = normal(1000, 1000)
    b = a.copy()
    b[712, 31] += np.float32(3e-4)
    assert not compare(a, b, FLOAT32).within
    assert compare(a, a.copy(), FLOAT32).ratio == 0


def test_noise_of_summation_passes() -> None:
    x, w = normal(64, 2048), normal(2048, 64, seed=1)
    exact = (x.astype("float64") @ w.astype("float64")).astype("float32")
    assert compare(exact, (x[:, ::-1] @ w[::-1]), FLOAT32).within


def test_giants_do_not_hide_what_is_ordinary() -> None:
    a = normal(4, 64)
    a[:, ::2] = np.finfo("float32").min
    b = a.copy()
    b[2, 3] += np.float32(1e-3)
    assert not compare(a, b, FLOAT32).within


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (math.nan, math.nan, True),
        (math.inf, math.inf, True),
        (math.inf, -math.inf, False),
        (math.nan, 0.0, False),
        (math.inf, 3e38, False),
        (0.0, -0.0, True),
    ],
)
def test_nan_and_infinity(a: float, b: float, equal: bool) -> None:
    left, right = np.array([1.0, a], "float32"), np.array([1.0, b], "float32")
    assert compare(left, right, FLOAT32).within is equal


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (np.array([1, 2], "int64"), np.array([1, 3], "int64"), False),
        (np.array([2**63], "uint64"), np.array([2**63 + 1], "uint64"), False),
        (np.array([True]), np.array([False]), False),
        (np.array(["a", "b"], object), np.array(["a", "b"], object), True),
        (np.array(["a", "b"], object), np.array(["a", "c"], object), False),
        (np.array([1, -2], ml_dtypes.int4), np.array([1, -2], ml_dtypes.int4), True),
        (np.array([1, -2], ml_dtypes.int4), np.array([1, -3], ml_dtypes.int4), False),
        ([np.zeros(2)], [np.zeros(2), np.zeros(2)], False),
        ([np.zeros(2)], [np.zeros(3)], False),
        ({"a": 1.0}, {"a": 1.0}, True),
        ({"a": 1.0}, {"b": 1.0}, False),
        (None, None, True),
        (None, np.zeros(1), False),
        (np.zeros(2, "float32"), np.zeros(2, "float64"), False),
        (np.zeros((2, 1), "float32"), np.zeros((1, 2), "float32"), False),
        (np.array([1 + 1j], "complex64"), np.array([1 + 1.1j], "complex64"), False),
    ],
)
def test_other_values_must_be_equal(a: Any, b: Any, equal: bool) -> None:
    assert compare(a, b, EXACT).within is equal


def test_every_float_has_a_row() -> None:
    assert {dtype for dtype in DType if dtype.is_float} <= set(TABLE)
    for dtype in (DType.INT8, DType.BOOL, DType.STRING, DType.UINT64, None):
        assert rule_of(dtype, Traits(), 1.0) == EXACT


def test_the_absolute_part_shrinks_with_the_output() -> None:
    assert rule_of(DType.FLOAT32, Traits(), 1e-9).absolute == pytest.approx(2e-15)
    assert rule_of(DType.FLOAT32, Traits(saturates=True), 1e-9).absolute == 2e-6
    assert rule_of(DType.FLOAT32, Traits(), 1e6).absolute == 2e-6


def test_equality_below_the_absolute_part_tells_nothing() -> None:
    a, b = np.array([1e-9, 2e-9]), np.array([3e-9, 1e-9])
    gap = compare(a, b, Rule(1e-6, 1e-5))
    assert gap.within
    assert gap.telling == 0
    assert compare(np.zeros(2), np.zeros(2), Rule(1e-6, 1e-5)).telling == 2


def test_noise_excuses_no_more_than_its_multiple() -> None:
    a = np.linspace(1, 2, 64)
    rule = Rule(0.0, 1e-5, cap=1e-3)
    own = compare(a, a * (1 + 4e-5), rule)
    assert judge(compare(a, a * (1 + 1e-4), rule), Own([own]), rule.cap).verdict == "widened"
    assert judge(compare(a, a * (1 + 1e-3), rule), Own([own]), rule.cap).verdict == "different"
    assert judge(compare(a, a * (1 + 1e-4), rule), Own(), rule.cap).verdict == "different"


def test_beyond_the_cap_nothing_is_accepted() -> None:
    a = np.linspace(1, 2, 64)
    rule = Rule(0.0, 1e-5, cap=1e-3)
    wild = compare(a, a * 1.1, rule)
    assert judge(wild, Own([wild]), rule.cap).verdict == "aside"


def test_a_flip_is_excused_only_where_the_original_flips() -> None:
    a, b = np.array([1, 2, 3]), np.array([1, 9, 3])
    flip = compare(a, b, EXACT)
    elsewhere = compare(a, np.array([7, 2, 3]), EXACT)
    assert judge(flip, Own([elsewhere]), 0.0).verdict == "different"
    assert judge(flip, Own([elsewhere, flip]), 0.0).verdict == "aside"


def test_inputs_move_by_units_of_the_last_place() -> None:
    feeds: dict[str, Any] = {"x": normal(100), "h": normal(100, dtype="float16"), "i": np.arange(3), "s": [normal(4)]}
    made = moved(feeds, 0)
    assert made["i"] is feeds["i"]
    for name, eps in (("x", 1.2e-7), ("h", 9.8e-4)):
        change = np.abs(np.asarray(made[name], "float64") - feeds[name]) / np.abs(feeds[name].astype("float64"))
        assert 0 < change.max() <= 5.5 * eps


def test_draws_are_compared_in_kind() -> None:
    def draws(scale: float, seed: int, count: int = 8) -> list[Any]:
        return [summed_up(scale * normal(1000, seed=seed + i)) for i in range(count)]

    assert unlike(draws(1.0, 0), draws(1.0, 100)) == ""
    assert "standard deviation" in unlike(draws(1.0, 0), draws(0.0, 100))
    assert "mean" in unlike(draws(1.0, 0), [summed_up(1 + normal(1000, seed=i)) for i in range(8)])
    assert "shape" in unlike(draws(1.0, 0), [summed_up(normal(10))])
    assert "element types" in unlike(draws(1.0, 0), [summed_up(np.arange(1000))])


def test_the_shelf_gives_back_what_it_got_also_from_disk() -> None:
    kept: dict[str, Any] = {"a": normal(100), "q": [np.arange(3), np.array(["x"], object)], "n": None}
    with closing(Shelf(memory_bytes=10)) as shelf:
        tickets = [shelf.put(kept), shelf.put({"b": np.array([1.5], ml_dtypes.bfloat16)})]
        assert shelf.get(tickets[1])["b"] == np.array([1.5], ml_dtypes.bfloat16)
        again = shelf.get(tickets[0])
    assert compare(kept["a"], again["a"], EXACT).within
    assert compare(kept["q"], again["q"], EXACT).within
    assert again["n"] is None


def test_the_scale_of_an_output_is_its_numbers() -> None:
    assert scale_of(np.full(4, 3.0)) == pytest.approx(3.0)
    assert scale_of(np.array([1, 2])) == 0
    assert scale_of([np.zeros(2), np.full(2, 2.0)]) == pytest.approx(2.0)
