# pyright: basic
"""A device measured for models: what is worth most first, within the time, and nothing that was measured is lost."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from onnx import parser

from superopt.cost.cache import RegionTime
from superopt.cost.costs import read_costs
from superopt.cost.portable import write_portable
from superopt.cost.samples import samples
from superopt.errors import BadModel, BadOption
from superopt.search.ending import Ending
from superopt.search.signatures import Signed
from superopt.search.surveying import Survey
from tests.search.counted import World, calibrated, saved
from tests.search.test_hunt import lora

pytestmark = pytest.mark.ort


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return saved(tmp_path / "m.onnx", lora(2))


def test_everything_is_measured_once_and_known_the_next_time(model: Path, tmp_path: Path, world: World) -> None:
    costs = tmp_path / "c.sqlite"
    first = calibrated(model, costs=costs)
    assert first.samples.known == first.samples.left == first.signatures.left == 0
    assert 100 < first.samples.measured <= sum(1 for _ in samples("cpu"))
    assert first.signatures.measured == first.models[0].signatures > 0
    assert first.candidates > 0
    assert first.models[0].searched
    assert first.models[0].share == pytest.approx(1.0)
    assert first.environment.device in {machine.device for machine in read_costs(costs).machines}
    asked, whole = len(world.regions), world.whole
    again = calibrated(model, costs=costs)
    assert (again.samples.measured, again.signatures.measured, again.candidates) == (0, 0, 0)
    assert again.signatures.known == first.signatures.measured
    assert (len(world.regions), world.whole) == (asked, whole)


def test_a_second_model_only_adds_what_is_its_own(model: Path, tmp_path: Path, world: World) -> None:
    deeper = saved(tmp_path / "deeper.onnx", lora(2, seed=1))  # the same structure, other weights
    found = calibrated(model, deeper, costs=tmp_path / "c.sqlite")
    alone = calibrated(model, costs=tmp_path / "d.sqlite")
    assert found.signatures == alone.signatures
    assert [m.share for m in found.models] == [pytest.approx(1.0)] * 2


def test_what_was_measured_before_the_end_was_asked_for_is_kept(model: Path, tmp_path: Path, world: World) -> None:
    told: list[str] = []
    ending = Ending(lambda: len(told) >= 4)
    calibration = calibrated(
        model, costs=tmp_path / "c", ending=ending, tell=lambda s, d: told.append(s) if s == "calibrating" else None
    )
    assert calibration.interrupted
    assert 20 < calibration.samples.measured < 100
    assert calibration.samples.left > 0
    assert calibration.signatures.left == calibration.models[0].signatures
    assert calibration.models[0].share == 0.0
    with_times = [e for e in read_costs(tmp_path / "c").regions.values() if e.time.seconds is not None]
    assert len(with_times) >= calibration.samples.measured
    rest = calibrated(model, costs=tmp_path / "c")
    assert rest.samples.known == calibration.samples.measured
    assert rest.samples.left == 0


def test_no_race_begins_when_the_time_is_over(model: Path, tmp_path: Path, world: World) -> None:
    started = time.monotonic()
    found = calibrated(model, costs=tmp_path / "c", seconds=1e-3)
    assert time.monotonic() - started < 30
    assert found.samples.measured == found.signatures.measured == found.candidates == 0
    assert not found.interrupted
    assert world.regions == []


def test_a_model_that_does_not_run_is_told_and_the_others_are_measured(
    model: Path, tmp_path: Path, world: World
) -> None:  # fmt: skip
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Nope(x) }'
    broken = saved(tmp_path / "broken.onnx", parser.parse_model(text))
    found = calibrated(broken, model, costs=tmp_path / "c")
    assert "cannot be run: " in found.models[0].notes[0]
    assert found.models[1].share == pytest.approx(1.0)
    (tmp_path / "junk.onnx").write_bytes(b"junk")
    with pytest.raises(BadModel):
        calibrated(model, tmp_path / "junk.onnx", costs=tmp_path / "c")


def test_an_exported_file_is_not_measured_into(model: Path, tmp_path: Path, world: World) -> None:
    calibrated(model, costs=tmp_path / "c.sqlite")
    write_portable(read_costs(tmp_path / "c.sqlite"), tmp_path / "c.json")
    with pytest.raises(BadOption, match=r"cannot be added to; superopt costs merge .*c\.json -o costs\.sqlite"):
        calibrated(model, costs=tmp_path / "c.json")


class Listening:
    """A timer that hears what it is asked, and takes a second for everything."""

    otherwise = None

    def __init__(self, name: str = "plain", fails: str = "") -> None:
        self.deployment, self.fails = SimpleNamespace(text=name, target="cpu"), fails
        self.known: dict[str, RegionTime] = {}
        self.asked: list[list[str]] = []

    def recall(self, key: str) -> RegionTime | None:
        return self.known.get(key)

    def time(self, subjects, seconds, **_) -> None:
        _, *keys = (s if isinstance(s, str) else s.key for s in subjects)
        self.asked.append(keys)
        self.known |= {k: RegionTime(None, "no") if k == self.fails else RegionTime(1.0) for k in keys}


def model_with(**values: float) -> Signed:
    return Signed(tuple(SimpleNamespace(key=k, value=v, subject=lambda k=k: k) for k, v in values.items()), 0.0)  # pyright: ignore[reportArgumentType]


def surveyed(timer: Listening, *models: Signed, over=lambda: False) -> Survey:
    survey = Survey(lambda *_: None, over)
    for model in models:
        survey.add(model, timer)  # pyright: ignore[reportArgumentType]
    survey.run()
    return survey


@pytest.mark.unit
def test_what_explains_most_of_a_run_comes_first_whatever_the_size_of_its_model() -> None:
    timer = Listening()
    timer.known["known"] = RegionTime(2.0)
    small, large = model_with(a=1e-6, shared=3e-6), model_with(b=1.0, shared=0.5, known=8.0, c=0.1)
    survey = surveyed(timer, small, large)
    assert timer.asked == [["shared", "a", "b", "c"]]
    assert survey.fates.tally().model_dump() == {"known": 1, "measured": 4, "failed": 0, "left": 0}


@pytest.mark.unit
def test_the_rest_is_left_when_the_time_is_over() -> None:
    timer = Listening()
    survey = surveyed(timer, model_with(**{f"s{k:02d}": 100.0 - k for k in range(30)}), over=lambda: bool(timer.asked))
    assert timer.asked == [[f"s{k:02d}" for k in range(11)]]
    assert survey.fates.tally().model_dump() == {"known": 0, "measured": 11, "failed": 0, "left": 19}


@pytest.mark.unit
def test_what_cannot_be_captured_is_timed_without() -> None:
    timer, plain = Listening("recorded", fails="b"), Listening()
    timer.otherwise = plain  # pyright: ignore[reportAttributeAccessIssue]
    surveyed(timer, model_with(a=2.0, b=1.0))
    assert (timer.asked, plain.asked) == ([["a", "b"]], [["b"]])
