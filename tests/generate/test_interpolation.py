"""Few products for short convolutions: exact, checked entry by entry, and the points that lose least."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from superopt.generate.interpolation import Matrix, Tables, best_tables, is_law, tables

pytestmark = pytest.mark.unit

POOL = [Fraction(n) for n in ("0", "1", "-1", "2", "-2", "1/2", "-1/2", "3", "1/3")]


def numbers(matrix: Matrix) -> np.ndarray:
    return np.array([[float(n) for n in row] for row in matrix])


@pytest.mark.parametrize(("outputs", "window"), [(1, 1), (1, 3), (2, 2), (2, 3), (3, 3), (4, 3), (2, 5), (6, 3)])
def test_any_points_make_a_law(outputs: int, window: int) -> None:
    for start in range(len(POOL) - (outputs + window - 2) + 1):
        found = tables(outputs, window, POOL[start : start + outputs + window - 2])
        assert found.products == outputs + window - 1
        assert is_law(found)


def test_an_entry_that_is_off_makes_none() -> None:
    found = tables(2, 3, POOL[:3])
    for name in ("outputs", "filters", "inputs"):
        first, *others = getattr(found, name)
        wrong = replace(found, **{name: ((first[0] + 1, *first[1:]), *others)})
        assert not is_law(wrong), name


@pytest.mark.parametrize("points", [POOL[:2], [*POOL[:2], POOL[0]]])
def test_too_few_points_are_refused(points: list[Fraction]) -> None:
    with pytest.raises(ValueError, match="takes 3 different points"):
        tables(2, 3, points)
    with pytest.raises(ValueError, match="takes 3 points"):
        best_tables(2, 3, POOL[:2])


def test_the_best_points_are_better_than_the_first() -> None:
    best, tried = best_tables(4, 3, POOL[:7])
    assert tried == 21
    first = tables(4, 3, POOL[:5])
    assert (best.amplification, first.amplification) == (22, 48)  # docs/generator.md names them
    assert rounding(best) < rounding(first)


def rounding(found: Tables) -> float:
    """The error of float32 on random tiles of 64 channels, along two axes."""
    rng = np.random.default_rng(0)
    a, g, b = numbers(found.outputs), numbers(found.filters), numbers(found.inputs)
    outputs, window, places = len(a), g.shape[1], len(b)
    x, k = rng.standard_normal((100, 64, places, places)), rng.standard_normal((64, window, window))
    exact = np.array(
        [
            [np.einsum("tcij,cij->t", x[:, :, i : i + window, j : j + window], k) for j in range(outputs)]
            for i in range(outputs)
        ]
    )
    single = np.float32
    u = (g @ k @ g.T).astype(single)
    v = b.astype(single) @ x.astype(single) @ b.T.astype(single)
    y = a.astype(single) @ np.einsum("cpq,tcpq->tpq", u, v) @ a.T.astype(single)
    return float(np.abs(y.transpose(1, 2, 0) - exact).max())
