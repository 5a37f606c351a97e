"""Short sums written out, positions told apart by their remainder, and what is proved with both."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from superopt.ops.domains import Reals
from superopt.ops.element import Number, Reduce, sum_over
from superopt.ops.evaluate import evaluate
from superopt.ops.formula import Tensor
from superopt.ops.index import symbol
from superopt.ops.table import table
from superopt.verify.prove import prove
from superopt.verify.unroll import places, term_count, unrolled
from tests.verify.sides import REGISTRY, given, op, rule, verdict

INTERLEAVED = """
    given x: [n, 2*p]
    y = Identity(x)
    =>
    e = Slice(x, starts=[0], ends=[2*p], axes=[1], steps=[2])
    o = Slice(x, starts=[1], ends=[2*p], axes=[1], steps=[2])
    y = Reshape(Concat(Unsqueeze(e, axes=[2]), Unsqueeze(o, axes=[2]), axis=2), shape=[n, 2*p])"""

ONE_AXIS = """
    given x: [n, c, 2*p]  k: [o, c, 3]
    y = Conv(x, k, pads=[1, 1])
    =>
    b = Unsqueeze([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]], axes=[1])
    u = Transpose(MatMul(k, [[1, 0.5, 0.5, 0], [0, 0.5, -0.5, 0], [0, 0.5, 0.5, 1]]), perm=[2, 0, 1])
    v = Conv(Reshape(x, shape=[n*c, 1, 2*p]), b, pads=[1, 1], strides=[2])
    m = MatMul(u, Transpose(Reshape(v, shape=[n, c, 4, p]), perm=[0, 2, 1, 3]))
    t = MatMul([[1, 1, 1, 0], [0, 1, -1, -1]], Transpose(m, perm=[0, 2, 1, 3]))
    y = Reshape(Transpose(t, perm=[0, 1, 3, 2]), shape=[n, o, 2*p])"""


@pytest.mark.unit
def test_a_written_out_sum_has_the_same_value() -> None:
    x, k = given("x", 1, 2, 5), given("k", 3, 2, 3)
    y = op("Conv", x, k, pads=[1, 1])
    rng = np.random.default_rng(0)
    values = {"x": rng.standard_normal((1, 2, 5)), "k": rng.standard_normal((3, 2, 3))}
    flat = Tensor(y.shape, lambda *i: unrolled(y[i]))
    np.testing.assert_allclose(evaluate(flat, values, Reals()), evaluate(y, values, Reals()), rtol=1e-12)


@pytest.mark.unit
def test_a_table_read_at_a_point_is_its_number() -> None:
    t = table([[1, 2], [3, Fraction(1, 2)]])
    total = unrolled(sum_over(2, lambda k: t[k, 1]))
    assert total == Number(Fraction(5, 2))


@pytest.mark.unit
def test_long_and_symbolic_sums_stay() -> None:
    x = given("x", symbol("n"))
    for extent in (symbol("n"), 1000):
        assert isinstance(unrolled(sum_over(extent, lambda k: x[k])), Reduce)


@pytest.mark.unit
def test_cases_are_all_remainders() -> None:
    i = symbol("@0")
    x = given("x", symbol("n"))
    assert [str(p[0]) for p in places((i,), x[i // 3])] == ["3·@0/3", "1 + 3·@0/3", "2 + 3·@0/3"]
    assert places((i,), x[i]) == [(i,)]


@pytest.mark.unit
def test_terms_are_counted_as_they_multiply_out() -> None:
    t = table([1, 0, 2])
    i = symbol("@0")
    assert term_count(t[i] * t[i]) == 4


@pytest.mark.smt
@pytest.mark.parametrize("body", [INTERLEAVED, pytest.param(ONE_AXIS, marks=pytest.mark.thorough)])
def test_tiles_are_proved(body: str) -> None:
    found = verdict(body)
    assert found.status == "proved", found.reason


@pytest.mark.smt
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("[0, 0.5, -0.5, 0]", "[0, 0.5, 0.5, 0]"),
        ("b, pads=[1, 1]", "b, pads=[2, 0]"),
        ("perm=[0, 1, 3, 2]", "perm=[0, 1, 2, 3]"),
    ],
)
@pytest.mark.thorough
def test_tiles_with_one_thing_wrong_are_not(right: str, wrong: str) -> None:
    """The prover alone, without the counterexamples that would show it at once."""
    assert right in ONE_AXIS
    found = prove(rule(ONE_AXIS.replace(right, wrong)), REGISTRY, seconds=20, examples=False)
    assert found.status == "unknown"


@pytest.mark.smt
def test_a_proof_ends_in_time() -> None:
    found = prove(rule(ONE_AXIS), REGISTRY, seconds=0.0, examples=False)
    assert (found.status, found.reason) == ("unknown", "no proof within 0 s")
