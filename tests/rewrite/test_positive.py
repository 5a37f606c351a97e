# pyright: basic
"""A rule about positive weights is used where the model's constants are, and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.rewrite.small import every_way, model, numbers
from tests.rewrite.taking import rules

NORMALIZED = """
g (float[2,3,5,5] x) => (float[2,4,5,5] y)
{
  n = BatchNormalization<epsilon = 0.001>(x, g, b, m, v)
  r = Relu(n)
  y = Conv(r, k)
}"""
ONE_MORE_INPUT = NORMALIZED.replace("x) =>", "x, float[3] g) =>")
RULES = rules("batchnorm-relu-conv-to-max-conv")


def weights() -> dict[str, Any]:
    given = {"g": [0.5, 1.25, 2.0], "b": [0.25, -0.5, 0.0], "m": [-1.0, 0.5, 0.25], "v": [1.0, 0.125, 2.0]}
    found = {name: np.array(value, np.float32) for name, value in given.items()}
    return {**found, "k": numbers(4, 3, 1, 1)}


@pytest.mark.ort
def test_scales_above_zero() -> None:
    feeds = {"x": numbers(2, 3, 5, 5)}
    assert every_way(model(NORMALIZED, **weights()), feeds, RULES)


@pytest.mark.ort
@pytest.mark.parametrize("bad", [0.0, -0.5, np.nan, np.inf])
@pytest.mark.parametrize("name", ["g", "v"])
def test_one_that_is_not_forbids_it(bad: float, name: str) -> None:
    given = weights()
    given[name][1] = bad
    with np.errstate(invalid="ignore"):
        assert not every_way(model(NORMALIZED, **given), {"x": numbers(2, 3, 5, 5)}, RULES)


@pytest.mark.ort
def test_scales_that_are_no_constants_are_not_known_to_be() -> None:
    given = weights()
    feeds = {"x": numbers(2, 3, 5, 5), "g": given.pop("g")}
    assert not every_way(model(ONE_MORE_INPUT, **given), feeds, RULES)
