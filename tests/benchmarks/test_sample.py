"""The bundled network: the same bytes every time, valid, small, and with everything in it that it promises."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from benchmarks import sample, suite


@pytest.mark.unit
def test_it_is_the_same_every_time_small_and_valid() -> None:
    first, second = (sample.build().SerializeToString(deterministic=True) for _ in range(2))
    assert first == second
    assert len(first) < 300_000
    model = onnx.load_from_string(first)
    onnx.checker.check_model(model, full_check=True)
    assert {n.op_type for n in model.graph.node} >= {"CastLike", "Expand", "BatchNormalization", "Dropout", "Identity"}


@pytest.mark.unit
@pytest.mark.parametrize("words", [[], ["--help"], ["model"], ["a.onnx", "b.onnx"]])
def test_nothing_is_written_for_a_path_that_is_none(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        sample.main(words)
    assert not list(tmp_path.iterdir())


@pytest.mark.unit
def test_it_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    assert sample.main([str(tmp_path / "new" / "sample.onnx")]) == 0
    assert (tmp_path / "new" / "sample.onnx").read_bytes() == sample.build().SerializeToString(deterministic=True)


@pytest.mark.ort
def test_onnxruntime_runs_it_and_its_answer_is_not_trivial() -> None:
    import numpy as np

    image = np.random.default_rng(0).random((2, 3, 160, 160), dtype=np.float32)
    ((scores,),) = suite.run(sample.build().SerializeToString(), [((image,), ())])
    assert scores.shape == (2, sample.CLASSES)
    assert np.isfinite(scores).all()
    assert scores.std() > 0.1
