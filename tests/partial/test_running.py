"""How many numbers a run reads, told without a run."""

from __future__ import annotations

import pytest

from superopt.partial.program import parse_original
from superopt.partial.running import work
from tests.partial.programs import REGISTRY

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("given", "steps", "expected"),
    [
        ("x: [1, 1, 4, 4] k: [1, 1, 3, 3]", "y = Conv(x, k, pads=[1, 1, 1, 1])", (16 + 9) + 16 * 9 * 2),
        ("x: [1, 1, 4, 4] k: [1, 1, 3, 3]", "y = Conv(x, k, pads=[7, 7, 7, 7])", (16 + 9) + 16 * 16 * 9 * 2),
        ("x: [2, 3] k: [3, 5] b: [5]", "y = Relu(Add(MatMul(x, k), b))", (6 + 15 + 5) + 10 * (3 * 2 + 2 + 1)),
        ("x: [2, 3] z: [2, 3]", "y = Concat(x, z, axis=0)", 12 + 12 * 2),
        ("x: [2, 3]", "y = ConstantOfShape(input=[4, 5], value=0)", 6 + 20),
        ("x: [0, 3]", "y = Neg(x)", 0),
    ],
    ids=["a convolution", "with padding", "one step after the other", "both branches", "nothing", "empty"],
)  # fmt: skip
def test_numbers_read(given: str, steps: str, expected: int) -> None:
    assert work(parse_original(given, steps, {}), REGISTRY) == expected


def test_what_could_never_be_run_is_counted_too() -> None:
    million = 10**6
    original = parse_original(
        f"x: [n, c, 4, 4] k: [o, c, {million}, 1]", f"y = Conv(x, k, pads={[million] * 4})", {"n": 2, "c": 3, "o": 5}
    )
    rows, columns = 4 + million + 1, 4 + 2 * million
    inputs = 2 * 3 * 16 + 5 * 3 * million
    assert work(original, REGISTRY) == inputs + 2 * 5 * rows * columns * 3 * million * 2
