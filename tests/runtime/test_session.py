from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from superopt.errors import CannotRun
from superopt.ir.types import DType
from superopt.runtime.deployment import Deployment
from superopt.runtime.port import Port
from superopt.runtime.session import Session
from tests.runtime.models import add_one, model, tensor

pytestmark = pytest.mark.ort

HERE = Deployment(threads=1)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def opened(made: onnx.ModelProto) -> Session:
    return Session(made.SerializeToString(), HERE)


def test_runs_from_bytes_and_from_a_path(tmp_path: Path):
    path = tmp_path / "m.onnx"
    path.write_bytes(add_one())
    for source in (add_one(), path):
        np.testing.assert_array_equal(Session(source, HERE).run({"x": X})["y"], X + 1)


def test_ports():
    session = Session(add_one(), HERE)
    assert session.inputs == (Port("x", "float32", ("n", 3)),)
    assert session.outputs == (Port("y", "float32", ("n", 3)),)
    assert session.overridable == ()
    assert session.cpu_nodes == 1


def test_an_initializer_that_is_an_input_may_be_overridden():
    nodes = [helper.make_node("Add", ["x", "c"], ["y"])]
    made = model(nodes, [tensor("x", [1]), tensor("c", [1])], [tensor("y", [1])], {"c": np.array([2], np.float32)})
    session = opened(made)
    assert [p.name for p in session.inputs] == ["x"]
    assert [p.name for p in session.overridable] == ["c"]
    one = np.array([1], np.float32)
    assert session.run({"x": one})["y"] == 3
    assert session.run({"x": one, "c": one})["y"] == 2


def test_free_dimensions_are_fixed():
    session = Session(add_one(), Deployment(threads=1, free_dims=(("n", 2),)))
    assert session.inputs[0].shape == (2, 3)


def test_the_level_decides_what_is_optimized():
    nodes = [helper.make_node("Identity", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
    made = model(nodes, [tensor("x", [2])], [tensor("y", [2])]).SerializeToString()
    assert Session(made, Deployment(threads=1, level="disable")).cpu_nodes == 2
    assert Session(made, Deployment(threads=1, level="all")).cpu_nodes == 1


def test_external_data_is_found_beside_a_path_and_in_the_folder_given_for_bytes(tmp_path: Path):
    made = onnx.load_from_string(add_one())
    path = tmp_path / "m.onnx"
    onnx.save(made, path, save_as_external_data=True, size_threshold=0, location="m.data")
    np.testing.assert_array_equal(Session(path, HERE).run({"x": X})["y"], X + 1)
    session = Session(path.read_bytes(), HERE, folder=tmp_path)
    np.testing.assert_array_equal(session.run({"x": X})["y"], X + 1)


@pytest.mark.parametrize(
    ("x", "says"),
    [
        (X.astype(np.float64), "input x: expected float32, found float64"),
        ([1.0], "input x: expected an array of float32, found list"),
        (np.zeros((2, 4), np.float32), "invalid dimensions for input: x .* index: 1 Got: 4 Expected: 3"),
    ],
)
def test_wrong_inputs_are_named(x: Any, says: str):
    with pytest.raises(CannotRun, match=says):
        Session(add_one(), HERE).run({"x": x})


def test_missing_and_unknown_inputs_are_named():
    session = Session(add_one(), HERE)
    with pytest.raises(CannotRun, match=r"input x \(float32\) is missing"):
        session.run({})
    with pytest.raises(CannotRun, match="no input z; its inputs: x"):
        session.run({"x": X, "z": X})


def test_failures_do_not_reach_stderr_or_show_paths(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    path = tmp_path / "secret.onnx"
    path.write_bytes(b"no model")
    with pytest.raises(CannotRun) as caught:
        Session(path, HERE)
    assert str(tmp_path) not in str(caught.value)
    assert "secret.onnx" in str(caught.value)
    reshape = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    made = model(reshape, [tensor("x", [2, 3]), tensor("s", [1], TensorProto.INT64)], [tensor("y", None)])
    with pytest.raises(CannotRun, match="running Reshape node"):
        opened(made).run({"x": X, "s": np.array([5])})
    assert capfd.readouterr() == ("", "")


def test_arrays_in_any_layout_and_byte_order():
    session = Session(add_one(), HERE)
    transposed = np.asarray(np.asfortranarray(X))
    np.testing.assert_array_equal(session.run({"x": transposed})["y"], X + 1)
    np.testing.assert_array_equal(session.run({"x": X.astype(">f4")})["y"], X + 1)
    np.testing.assert_array_equal(session.run({"x": X[::-1]})["y"], X[::-1] + 1)


RAW = {
    TensorProto.BFLOAT16: ml_dtypes.bfloat16,
    TensorProto.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    TensorProto.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    TensorProto.INT4: ml_dtypes.int4,
    TensorProto.UINT4: ml_dtypes.uint4,
}


@pytest.mark.parametrize(("code", "dtype"), RAW.items())
def test_types_numpy_does_not_know(code: int, dtype: Any):
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["wide"], ["y"], to=code),
    ]
    made = model(nodes, [tensor("x", ["n"], code)], [tensor("wide", ["n"]), tensor("y", ["n"], code)])
    session = opened(made)
    assert isinstance(session.inputs[0].dtype, DType)
    for values in ([1, 2, 3, 4, 7], []):
        x = np.array(values).astype(dtype)
        found = session.run({"x": x})
        np.testing.assert_array_equal(found["wide"], np.array(values, np.float32))
        assert isinstance(found["y"], np.ndarray)
        assert found["y"].dtype == x.dtype
        np.testing.assert_array_equal(found["y"].astype(np.float32), x.astype(np.float32))
        session.bind({"x": x}).run()


def test_negative_int4_survives():
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.INT8)]
    made = model(nodes, [tensor("x", [3], TensorProto.INT4)], [tensor("y", [3], TensorProto.INT8)])
    found = opened(made).run({"x": np.array([-8, -1, 7]).astype(ml_dtypes.int4)})["y"]
    np.testing.assert_array_equal(found, [-8, -1, 7])


@pytest.mark.parametrize("x", [np.array(["a", "ü"], object), np.array(["a", "ü"]), np.char.encode(["a", "ü"])])
def test_strings(x: Any):
    nodes = [helper.make_node("StringConcat", ["x", "x"], ["y"])]
    made = model(nodes, [tensor("x", [2], TensorProto.STRING)], [tensor("y", [2], TensorProto.STRING)])
    session = opened(made)
    assert session.inputs == (Port("x", "string", (2,)),)
    np.testing.assert_array_equal(session.run({"x": x})["y"], ["aa", "üü"])
    binding = session.bind({"x": x})
    binding.run()
    assert not binding.resident


def test_sequences():
    sequence = helper.make_tensor_sequence_value_info
    nodes = [helper.make_node("SequenceInsert", ["s", "x"], ["t"])]
    made = model(nodes, [sequence("s", 1, None), tensor("x", ["k"])], [sequence("t", 1, None)])
    session = opened(made)
    assert session.inputs[0] == Port("s", "seq(tensor(float))", None)
    assert not session.inputs[0].is_tensor
    one, two = np.array([1], np.float32), np.array([2, 2], np.float32)
    found = session.run({"s": [one], "x": two})["t"]
    assert isinstance(found, list)
    assert [len(part) for part in found] == [1, 2]
    session.bind({"s": [one], "x": two}).run()


def test_an_empty_optional_is_none():
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    nodes = [helper.make_node("Identity", ["o"], ["p"])]
    made = model(nodes, [helper.make_value_info("o", kind)], [helper.make_value_info("p", kind)])
    session = opened(made)
    assert session.run({}) == {"p": None}
    assert session.run({"o": None}) == {"p": None}
    np.testing.assert_array_equal(session.run({"o": np.array([1, 2], np.float32)})["p"], [1, 2])


def test_a_binding_keeps_its_tensors_on_the_device():
    session = Session(add_one(), HERE)
    binding = session.bind({"x": X})
    assert binding.resident
    binding.run()
    with pytest.raises(CannotRun, match="invalid dimensions"):
        session.bind({"x": np.zeros((2, 4), np.float32)})


def test_a_binding_whose_output_size_changes_says_so():
    nodes = [helper.make_node("NonZero", ["x"], ["y"])]
    session = opened(model(nodes, [tensor("x", [4])], [tensor("y", [1, None], TensorProto.INT64)]))
    x = np.array([0, 1, 0, 1], np.float32)
    binding = session.bind({"x": x})
    binding.run()
    x[:] = 1
    with pytest.raises(CannotRun):
        binding.run()


def test_a_closed_session_does_not_run():
    with Session(add_one(), HERE) as session:
        session.run({"x": X})
    with pytest.raises(RuntimeError, match="closed"):
        session.run({"x": X})


def test_an_output_declared_with_a_wrong_rank_is_timed_all_the_same():
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    made = model(nodes, [tensor("x", [2, 3]), tensor("s", ["r"], TensorProto.INT64)], [tensor("y", [1, "n"])])
    session = opened(made)
    feeds = {"x": X, "s": np.array([1, 2, 3], np.int64)}
    found = session.run(feeds)["y"]
    assert isinstance(found, np.ndarray)
    assert found.shape == (1, 2, 3)
    binding = session.bind(feeds)
    binding.run()
    binding.run()


def test_a_binding_reads_its_inputs_anew():
    session = Session(add_one(), HERE)
    first = np.zeros_like(X)
    np.testing.assert_array_equal(session.replay({"x": first}, {"x": X})["y"], X + 1)
    assert not first.any()  # the caller's array is left alone


def test_a_binding_of_a_type_that_numpy_does_not_know_reads_its_inputs_anew():
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    made = model(nodes, [tensor("x", [2, 3], TensorProto.BFLOAT16)], [tensor("y", [2, 3], TensorProto.BFLOAT16)])
    x = X.astype(ml_dtypes.bfloat16)
    found = opened(made).replay({"x": np.zeros_like(x)}, {"x": x})["y"]
    np.testing.assert_array_equal(found, x)


def test_what_cannot_be_bound_cannot_be_replayed():
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    made = model(nodes, [tensor("x", [1], TensorProto.STRING)], [tensor("y", [1], TensorProto.STRING)])
    words = {"x": np.array(["a"], object)}
    with pytest.raises(CannotRun, match="cannot be bound"):
        opened(made).replay(words, words)
