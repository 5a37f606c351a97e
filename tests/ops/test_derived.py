"""What else derives from a formula: linearity and counts of work."""

from __future__ import annotations

import pytest

from superopt.ops.count import work
from superopt.ops.degree import degrees, is_linear
from superopt.ops.formula import Tensor
from superopt.ops.index import symbol
from tests.verify.sides import given, op

pytestmark = pytest.mark.unit

X, K, B = given("x", 1, 4, 6, 6), given("k", 8, 4, 3, 3), given("b", 8)


@pytest.mark.parametrize(
    ("tensor", "linear"),
    [
        (op("Conv", X, K), {"x", "k"}),
        (op("Conv", X, K, B), set[str]()),
        (op("Relu", X), set[str]()),
        (op("Mul", X, X), set[str]()),
        (op("Sub", X, X), {"x"}),
        (op("Transpose", X), {"x"}),
        (op("MatMul", X, given("k", 6, 5)), {"x", "k"}),
        (op("Softmax", X), set[str]()),
        (op("AveragePool", X, kernel_shape=[2, 2]), {"x"}),
        (op("MaxPool", X, kernel_shape=[2, 2]), set[str]()),
    ],
)
def test_multilinearity(tensor: Tensor, linear: set[str]) -> None:
    assert {name for name in ("x", "k") if is_linear(tensor, name)} == linear


def test_a_bias_makes_it_affine_not_linear() -> None:
    biased = op("Conv", X, K, B)
    assert degrees(biased, "x") == {0, 1}
    assert is_linear(biased, "b") is False
    assert degrees(biased, "b") == {0, 1}


def test_linearity_holds_for_symbolic_sizes() -> None:
    n, k = symbol("n"), symbol("k")
    assert is_linear(op("MatMul", given("x", n, k), given("y", k, n)), "y")


def test_work_is_counted_from_the_formula() -> None:
    m, k, n = 3, 5, 7
    done = work(op("MatMul", given("x", m, k), given("y", k, n)), [(m, k), (k, n)])
    assert done.operations == 2 * m * k * n
    assert done.elements_moved == m * k + k * n + m * n
    assert work(op("Relu", X), [(1, 4, 6, 6)]).operations == 144
