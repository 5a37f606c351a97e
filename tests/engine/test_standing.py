"""The best speed-up so far."""

from __future__ import annotations

import pytest

from superopt.engine.standing import Standing

pytestmark = pytest.mark.unit


def test_predictions_count_until_whole_models_were_timed() -> None:
    standing = Standing()
    assert (standing.speedup, standing.basis) == (None, None)
    standing.hear(1.4, "predicted")
    assert (standing.speedup, standing.basis) == (1.4, "predicted")
    standing.hear(1.2, "measured")
    standing.hear(1.5, "predicted")
    assert (standing.speedup, standing.basis) == (1.2, "measured")
    standing.hear(0.9, "measured")
    assert standing.speedup == 1.0, "then the original is the best"
