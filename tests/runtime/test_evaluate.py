import numpy as np
import pytest
from onnx import TensorProto, helper

from superopt.errors import CannotRun, LimitHit
from superopt.runtime.evaluate import evaluate
from tests.runtime.models import add_one, model, tensor

pytestmark = pytest.mark.ort


def test_outputs_come_in_the_models_order():
    nodes = [helper.make_node("Neg", ["x"], ["b"]), helper.make_node("Abs", ["x"], ["a"])]
    made = model(nodes, [tensor("x", [2])], [tensor("b", [2]), tensor("a", [2])])
    b, a = evaluate(made.SerializeToString(), {"x": np.array([1, -2], np.float32)})
    np.testing.assert_array_equal(b, [-1, 2])
    np.testing.assert_array_equal(a, [1, 2])


def constant_of_shape(declared: list[int | str | None]) -> bytes:
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["y"])]
    made = model(nodes, [tensor("s", [2], TensorProto.INT64)], [tensor("y", declared)])
    return made.SerializeToString()


def test_a_declared_size_over_the_limit_is_refused_before_running():
    feeds = {"s": np.array([1 << 20, 1 << 20])}  # running it would need 4 TB
    with pytest.raises(LimitHit, match=r"output y: \d+ bytes, the limit is 1000"):
        evaluate(constant_of_shape([1 << 20, 1 << 20]), feeds, byte_limit=1000)


def test_a_size_only_the_run_tells_is_refused_after_it():
    with pytest.raises(LimitHit, match="output y: 4096 bytes, the limit is 4095"):
        evaluate(constant_of_shape([None, None]), {"s": np.array([32, 32])}, byte_limit=4095)


def test_a_size_at_the_limit_passes():
    (y,) = evaluate(constant_of_shape([None, None]), {"s": np.array([32, 32])}, byte_limit=4096)
    assert y.shape == (32, 32)


def test_what_is_no_tensor_is_refused():
    nodes = [helper.make_node("SequenceConstruct", ["x"], ["y"])]
    sequence = helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, None)
    made = model(nodes, [tensor("x", [2])], [sequence])
    with pytest.raises(CannotRun, match="output y: expected a tensor, found list"):
        evaluate(made.SerializeToString(), {"x": np.zeros(2, np.float32)})


def test_a_model_that_does_not_open_cannot_run():
    with pytest.raises(CannotRun, match="cannot open the model: Failed to load model"):
        evaluate(b"no model", {})
    with pytest.raises(CannotRun, match=r"input x \(float32\) is missing"):
        evaluate(add_one(), {})
