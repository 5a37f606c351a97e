"""Prices come from a calibration, or from what is known of the very device where nobody has made one."""

from __future__ import annotations

from pathlib import Path

import pytest

from superopt.cost.coefficients import ON_CUDA, PRIORS, Coefficients
from superopt.ir.onnx import parse
from superopt.options import Options
from superopt.runtime.probe import relu_model
from superopt.search.ending import Ending
from superopt.search.hunting import Ground
from superopt.search.trial import Trial

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("known", "begun", "prices"),
    [(ON_CUDA, False, ON_CUDA), (ON_CUDA, True, PRIORS), (None, False, PRIORS), (None, True, PRIORS)],
)
def test_a_known_device_is_calibrated_only_where_that_was_begun(
    known: Coefficients | None, begun: bool, prices: Coefficients, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("superopt.search.hunting.learned", lambda *_: known)
    monkeypatch.setattr("superopt.search.hunting.is_begun", lambda *_: begun)
    monkeypatch.setattr("superopt.search.hunting.calibrate", lambda *_: PRIORS)
    options = Options.of(target="cpu", threads=1)
    trial = Trial(parse(relu_model(17, 8)), options, lambda *_: None)
    with Ground(trial, options, lambda *_: None, Ending()) as ground:
        assert ground.coefficients is prices


def test_who_names_a_cost_file_gets_it_calibrated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("superopt.search.hunting.learned", lambda *_: ON_CUDA)
    monkeypatch.setattr("superopt.search.hunting.calibrate", lambda *_: PRIORS)
    options = Options.of(target="cpu", threads=1, costs=tmp_path / "costs.sqlite")
    trial = Trial(parse(relu_model(17, 8)), options, lambda *_: None)
    with Ground(trial, options, lambda *_: None, Ending()) as ground:
        assert ground.coefficients is PRIORS
