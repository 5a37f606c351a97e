"""The user's own inputs."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from superopt.check import Request, check
from superopt.check.own import own_inputs
from superopt.errors import BadOption
from superopt.ir.onnx import Model
from superopt.ir.types import DType
from superopt.runtime.port import Port
from tests.check.build import INT64, model, node, value

X, IDS = Port("x", DType.FLOAT32, ("n", 3)), Port("ids", DType.INT64, (None,))


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


@pytest.mark.unit
def test_one_set(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", x=np.ones((2, 3), "float32"), ids=np.arange(4))
    (found,) = own_inputs(path, [X, IDS], [])
    assert {name: array.shape for name, array in found.items()} == {"x": (2, 3), "ids": (4,)}


@pytest.mark.unit
def test_several_sets_by_number(tmp_path: Path) -> None:
    sets = {f"{i}/x": np.full((i + 1, 3), i, "float32") for i in (0, 1, 10)}
    found = own_inputs(saved(tmp_path / "a.npz", **sets), [X], [])
    assert [len(s["x"]) for s in found] == [1, 2, 11]


@pytest.mark.unit
def test_a_name_with_a_slash_is_a_name(tmp_path: Path) -> None:
    port = Port("0/x", DType.FLOAT32, (3,))
    path = saved(tmp_path / "a.npz", **{"0/x": np.ones(3, "float32")})
    assert list(own_inputs(path, [port], [])[0]) == ["0/x"]


@pytest.mark.unit
def test_bfloat16_survives_numpy(tmp_path: Path) -> None:
    port = Port("x", DType.BFLOAT16, (2,))
    path = saved(tmp_path / "a.npz", x=np.array([1.5, -2.0], ml_dtypes.bfloat16))
    assert own_inputs(path, [port], [])[0]["x"].astype("float32").tolist() == [1.5, -2.0]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"y": np.ones(3)}, r"the model has no input 'y'; expected x \(float32\[n, 3\]\)"),
        ({"x": np.ones((2, 3))}, "x: expected float32, found float64"),
        ({"x": np.ones((2, 4), "float32")}, r"x: expected shape \[n, 3\], found \[2, 4\]"),
        ({"x": np.ones(3, "float32")}, r"x: expected shape \[n, 3\], found \[3\]"),
        ({"x": np.array(["a"], object)}, "Python objects"),
        ({}, "holds no arrays"),
    ],
    ids=["name", "dtype", "shape", "rank", "objects", "empty"],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, arrays: dict[str, Any], text: str) -> None:
    with pytest.raises(BadOption, match=text):
        own_inputs(saved(tmp_path / "a.npz", **arrays), [X], [])


@pytest.mark.unit
def test_a_missing_array_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.npz", **{"0/x": np.ones((1, 3), "float32"), "1/ids": np.arange(2)})
    with pytest.raises(BadOption, match=r"set 0 .*no array for ids \(int64\[\?\]\)"):
        own_inputs(path, [X, IDS], [])


@pytest.mark.unit
def test_what_is_no_npz_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with pytest.raises(BadOption, match="no such file"):
        own_inputs(path, [X], [])
    path.write_bytes(b"not a zip")
    with pytest.raises(BadOption, match=r"expected an \.npz file"):
        own_inputs(path, [X], [])
    np.savez(path, x=np.ones((2, 3), "float32"))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(BadOption, match=r"expected an \.npz file"):
        own_inputs(path, [X], [])


@pytest.mark.unit
def test_a_header_that_claims_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40, 3)})
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    with pytest.raises(BadOption, match="which its size does not hold"):
        own_inputs(path, [X], [])


def selective(threshold: float) -> Model:
    """Differs only beyond a threshold that no made input reaches."""
    nodes = [node("Clip", ["x", "", "t"], ["y"])]
    return model(nodes, [value("x", ["n", 3])], [value("y", ["n", 3])], {"t": np.float32(threshold)})


@pytest.mark.ort
def test_own_inputs_are_run_besides_made_ones(tmp_path: Path) -> None:
    path = saved(tmp_path / "data.npz", **{"0/x": np.ones((7, 3), "float32"), "1/x": np.full((2, 3), 1e7, "float32")})
    original, candidate = selective(1e6), selective(2e6)
    assert check(original, candidate).status == "equal"
    report = check(original, candidate, Request(inputs=path))
    assert report.status == "different"
    assert report.reason.endswith("on set 1 of data.npz")
    assert report.inputs[:2] == ["set 0 of data.npz", "set 1 of data.npz"]
    assert "n=7" in report.inputs[2]


@pytest.mark.ort
def test_own_inputs_that_the_original_refuses_are_the_users_mistake(tmp_path: Path) -> None:
    nodes = [node("Gather", ["t", "ids"], ["y"])]
    made = model(nodes, [value("ids", ["n"], INT64)], [value("y", None)], {"t": np.ones((4, 2), "float32")})
    with pytest.raises(BadOption, match=r"data\.npz: the original refuses it"):
        check(made, made, Request(inputs=saved(tmp_path / "data.npz", ids=np.array([99]))))
