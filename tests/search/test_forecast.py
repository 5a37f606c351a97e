"""The forecast of a search: what regions gained, as a part of the whole."""

from __future__ import annotations

import pytest

from superopt.search.forecast import Forecast

pytestmark = pytest.mark.unit


def test_gains_of_one_round_add_up_and_rounds_multiply() -> None:
    forecast = Forecast()
    assert forecast.speedup == 1.0
    forecast.begin("")
    forecast.gain("", 0.5, before=2.0, after=1.0)
    assert forecast.speedup == pytest.approx(1 / 0.75)
    forecast.gain("", 0.4, before=1.0, after=0.5)
    assert forecast.speedup == pytest.approx(1 / 0.55)
    forecast.begin("")
    assert forecast.speedup == pytest.approx(1 / 0.55)
    forecast.gain("", 1.0, before=1.0, after=0.5)
    assert forecast.speedup == pytest.approx(2 / 0.55)


def test_a_body_counts_by_its_weight() -> None:
    forecast = Forecast({"": 3.0, "if/then/": 1.0})
    forecast.begin("if/then/")
    forecast.gain("if/then/", 1.0, before=1.0, after=0.5)
    assert forecast.speedup == pytest.approx(4.0 / 3.5)


def test_what_cannot_be_is_not_forecast() -> None:
    """Regions that overlap may save more than there is; a model that costs nothing gains nothing."""
    forecast = Forecast()
    for _ in range(3):
        forecast.gain("", 0.9, before=1.0, after=0.1)
    assert forecast.speedup == 1.0
    assert Forecast({"": 0.0}).speedup == 1.0
