# pyright: basic
"""The networks of the benchmark on a GPU: other batch sizes and types compute the same, options survive the way."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks import peer_wheels
from benchmarks.built_sequences import linear_attention, lstm_unrolled
from benchmarks.built_variants import as_float16, float_inputs, nasrnn, with_batch
from benchmarks.gpu_models import BUILT, Files, files_of, make, read_arrays
from benchmarks.gpu_plan import NETWORKS
from benchmarks.gpu_worker import deployment_of, distance, race
from superopt.runtime.deployment import Deployment
from superopt.runtime.recipe import flat_options
from superopt.runtime.session import Session


def small_nasrnn() -> onnx.ModelProto:
    return nasrnn(width=8, steps=2)


def small_lstm() -> onnx.ModelProto:
    return lstm_unrolled(steps=3, width=8)


def answer(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    with Session(model.SerializeToString(), Deployment("cpu", threads=1)) as session:
        return [np.asarray(value) for value in session.run(feeds).values()]


@pytest.mark.ort
@pytest.mark.parametrize("build", [small_nasrnn, small_lstm])
def test_a_batch_is_as_many_runs(build) -> None:
    model, batch = build(), 3
    feeds = float_inputs(with_batch(model, batch))
    (together,) = answer(with_batch(model, batch), feeds)
    for i in range(batch):
        (one,) = answer(model, {name: value[i : i + 1] for name, value in feeds.items()})
        np.testing.assert_allclose(together[i : i + 1], one, rtol=1e-5, atol=1e-6)


@pytest.mark.unit
def test_reshapes_follow_the_batch_and_axes_do_not() -> None:
    model = with_batch(linear_attention(), 16)
    shapes = {t.name: onnx.numpy_helper.to_array(t).tolist() for t in model.graph.initializer if t.data_type == 7}
    used = {shapes[n.input[1]][0] for n in model.graph.node if n.op_type == "Reshape"}
    assert used == {16}
    unrolled = with_batch(small_lstm(), 16)
    axes = {n.input[1] for n in unrolled.graph.node if n.op_type == "Unsqueeze"}
    assert axes == {"integers_1"}


@pytest.mark.ort
def test_float16_is_the_same_network_rounded() -> None:
    model = small_nasrnn()
    feeds = float_inputs(model)
    half = as_float16(model)
    (wide,) = answer(model, feeds)
    (narrow,) = answer(half, {name: value.astype(np.float16) for name, value in feeds.items()})
    assert narrow.dtype == np.float16
    assert distance([wide], [narrow]) < 1e-2
    assert {t.data_type for t in half.graph.initializer} == {onnx.TensorProto.FLOAT16}


@pytest.mark.unit
def test_distance_sees_every_output() -> None:
    a = np.array([3.0, 4.0])
    assert distance([a, a], [a, a]) == 0
    assert distance([a, a], [a, a + np.array([0, 0.5])]) == pytest.approx(0.1)
    assert distance([a], [a[:1]]) == float("inf")
    assert distance([a], [np.array([np.nan, 4.0])]) == float("inf")
    assert distance([a], []) == float("inf")


@pytest.mark.unit
def test_options_come_back_from_a_report() -> None:
    wanted = Deployment(
        "cuda", 4, "extended", provider_options=(("enable_cuda_graph", "1"), ("prefer_nhwc", "1")),
        config=(("ep.cuda.enable_gemm_auto_tune", "1"),),
    )  # fmt: skip
    assert deployment_of(flat_options(wanted), "cuda") == wanted
    assert deployment_of({}, "cuda") == Deployment("cuda")
    assert deployment_of({"cuda.prefer_nhwc": "1"}, "cuda").provider_options == (("prefer_nhwc", "1"),)


@pytest.mark.unit
def test_every_network_of_the_plan_is_built_or_exported() -> None:
    text = Path(peer_wheels.__file__).with_name("torch_networks.py").read_text()
    assert [name for name in NETWORKS if name not in BUILT and f'"{name}": ' not in text] == []


@pytest.mark.ort
def test_a_network_is_made_and_raced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BUILT, "nasrnn", small_nasrnn)
    place = ("nasrnn", "fp32", 2)
    files = files_of(tmp_path, place)
    make(files, place, "cpu")
    assert read_arrays(files.inputs)["x0"].shape == (2, 8)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    entrants = [("one", str(files.model), {}), ("bad", str(broken), {}), ("two", str(files.model), {})]
    found = race(str(tmp_path), list(place), "cpu", 0.05, entrants)
    assert found["errors"]["one"] < 1e-4
    assert found["errors"]["two"] < 1e-4
    assert "broken.onnx" in found["errors"]["bad"]
    assert [s["name"] for s in found["comparison"]["subjects"]] == ["one", "two"]


@pytest.mark.unit
def test_real_models_keep_their_sizes(tmp_path: Path) -> None:
    assert files_of(tmp_path, ("magika", "fp32", 1)).shapes == {"bytes": [1, 2048]}
    assert files_of(tmp_path, ("nasrnn", "fp32", 1)) == Files(tmp_path / "nasrnn-fp32-b1")


@pytest.mark.unit
def test_a_part_of_a_wheel_and_its_way_to_the_other_machine(tmp_path: Path) -> None:
    whole, folder = tmp_path / "onnxruntime_gpu-1.2-x.whl", tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(whole, "w") as file:
        for name in ("transformers/optimizer.py", "transformers/models/big.py", "capi/lib.so"):
            file.writestr(f"onnxruntime/{name}", "")
    peer_wheels.cut(whole, folder / "onnxruntime_transformers-1.2-py3-none-any.whl")
    site = peer_wheels.unpacked(folder, tmp_path / "site")
    assert (site / "onnxruntime" / "transformers" / "optimizer.py").exists()
    assert not (site / "onnxruntime" / "capi").exists()
    assert not (site / "onnxruntime" / "transformers" / "models").exists()
    assert peer_wheels.versions(folder) == {"onnxruntime_transformers": "1.2"}
