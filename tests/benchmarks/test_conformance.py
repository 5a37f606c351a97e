# pyright: basic
"""The conformance script finds what it is there to find: wrong, crashing, hanging and harmful passes.

A suite that cannot fail proves nothing, so it is run here against passes that are broken on purpose.
"""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks import conformance, suite

pytestmark = pytest.mark.ort


def case(name: str = "shift", operator: str = "Add", expected: float = 3.0, opset: int = 18) -> suite.Case:
    """y = x + 1, with a constant that a broken pass can change."""
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "one"], ["y"])],
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        [numpy_helper.from_array(np.array([1.0], dtype=np.float32), "one")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    x, y = np.full(2, 2.0, dtype=np.float32), np.full(2, expected, dtype=np.float32)
    return suite.Case(name, "node", model.SerializeToString(), (((x,), (y,)),), 1e-3, 1e-7)


def edit(model: bytes, change) -> tuple[bytes, tuple[str, ...]]:
    proto = onnx.load_from_string(model)
    change(proto)
    return proto.SerializeToString(), ("broken",)


def add_two(model: bytes) -> tuple[bytes, tuple[str, ...]]:
    two = numpy_helper.from_array(np.array([2.0], dtype=np.float32), "one")
    return edit(model, lambda m: m.graph.initializer[0].CopyFrom(two))


def add_a_little(model: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Inside the suite's tolerance, outside the one between original and candidate."""
    little = numpy_helper.from_array(np.array([1.001], dtype=np.float32), "one")
    return edit(model, lambda m: m.graph.initializer[0].CopyFrom(little))


def swap_operands(model: bytes) -> tuple[bytes, tuple[str, ...]]:
    return edit(model, lambda m: m.graph.node[0].input.reverse())


def rename_output(model: bytes) -> tuple[bytes, tuple[str, ...]]:
    def change(proto: onnx.ModelProto) -> None:
        proto.graph.node[0].output[0] = proto.graph.output[0].name = "z"

    return edit(model, change)


def name_nothing(model: bytes) -> tuple[bytes, tuple[str, ...]]:
    return edit(model, lambda m: m.graph.node[0].input.__setitem__(0, "nothing"))


def raise_an_error(model: bytes) -> tuple[bytes, tuple[str, ...]]:
    raise ValueError("cannot do it")


def segfault(model: bytes) -> tuple[bytes, tuple[str, ...]]:
    os.kill(os.getpid(), signal.SIGSEGV)
    return model, ()


def hang(model: bytes) -> tuple[bytes, tuple[str, ...]]:
    time.sleep(600)
    return model, ()


def forget_the_graph(model: bytes) -> bytes:
    proto = onnx.load_from_string(model)
    proto.graph.ClearField("node")
    return proto.SerializeToString()


def examine(tidy, subject: suite.Case | None = None, round_trip=conformance.same_bytes) -> conformance.Outcome:
    return conformance.examine(subject or case(), tidy, round_trip, lambda stage: None, run=True)


def test_a_pass_that_does_nothing_is_fine() -> None:
    outcome = examine(conformance.no_passes)
    assert outcome == conformance.Outcome("shift", "node")


def test_a_right_change_is_counted_and_fine() -> None:
    outcome = examine(swap_operands)
    assert outcome.changed
    assert outcome.rewrites == ("broken",)
    assert (outcome.wrong, outcome.crashed, outcome.harmed) == ("", "", "")


@pytest.mark.parametrize("tidy", [add_two, add_a_little])
def test_a_wrong_answer_is_found(tidy) -> None:
    assert "not the original's answer" in examine(tidy).wrong


def test_a_wrong_answer_is_found_even_where_the_original_was_not_what_the_suite_expects() -> None:
    outcome = examine(add_two, case(expected=4.0))
    assert outcome.unexpected
    assert outcome.wrong


def test_a_changed_interface_is_harm() -> None:
    assert examine(rename_output).harmed == "outputs changed"


def test_a_candidate_that_does_not_load_is_a_crash_and_harm() -> None:
    outcome = examine(name_nothing)
    assert outcome.crashed.startswith("after")
    assert "checker" in outcome.harmed


def test_an_import_that_loses_something_is_harm() -> None:
    assert "import and export" in examine(conformance.no_passes, round_trip=forget_the_graph).harmed


def test_a_model_onnxruntime_does_not_run_is_still_examined() -> None:
    unknown = case("unknown", operator="NoSuchOperator")
    assert examine(conformance.no_passes, unknown).not_run
    assert examine(rename_output, unknown).harmed
    assert examine(raise_an_error, unknown).crashed == "tidy: ValueError: cannot do it"


def test_random_models_are_compared_by_shape_only() -> None:
    node = helper.make_node("RandomUniformLike", ["x"], ["y"])
    value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    model = helper.make_model(
        helper.make_graph([node], "g", value[:1], value[1:]), opset_imports=[helper.make_opsetid("", 18)], ir_version=8
    )
    x = np.zeros(2, dtype=np.float32)
    subject = suite.Case("random", "node", model.SerializeToString(), (((x,), (x,)),), 1e-3, 1e-7)
    outcome = examine(conformance.no_passes, subject)
    assert outcome.random
    assert (outcome.unexpected, outcome.wrong) == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tidy", "reason"), [(segfault, "worker died with exit code -11"), (hang, "took too long"), (raise_an_error, "it")]
)
def test_a_worker_that_dies_costs_its_case_only(tidy, reason: str) -> None:
    cases = [case("one"), case("two")]
    outcomes = conformance.run_all(cases, tidy, conformance.same_bytes, workers=2, timeout=1.0)
    assert [o.name for o in outcomes] == ["one", "two"]
    for outcome in outcomes:
        assert outcome.crashed.startswith("tidy: ")
        assert reason in outcome.crashed


def test_the_summary_counts_and_names_every_failure() -> None:
    text = conformance.summary([examine(conformance.no_passes), examine(add_two), examine(rename_output)])
    counts = {line[:36].strip(): line.split()[-1] for line in text.splitlines()[1:12]}
    assert counts["total"] == "3"
    assert counts["changed by passes"] == "2"
    assert counts["wrong after"] == "1"
    assert counts["harmed"] == "1"
    assert "wrong: node/shift:" in text
    assert "harmed: node/shift: outputs changed" in text


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "uint2", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_types_that_numpy_lacks_go_in_and_come_out(name: str) -> None:
    import ml_dtypes

    x = np.array([[1, 0, 1], [0, 1, 1]]).astype(getattr(ml_dtypes, name))
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    described = {
        name: helper.make_tensor_value_info(name, element, [2, 3])
        for name, element in (("x", kind), ("wide", TensorProto.FLOAT), ("y", kind))
    }
    nodes = [
        helper.make_node("Cast", ["x"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["wide"], ["y"], to=kind),
    ]
    graph = helper.make_graph(nodes, "g", [described["x"]], [described["wide"], described["y"]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    ((wide, y),) = suite.run(model.SerializeToString(), [((x,), ())])
    assert wide.tolist() == x.astype(np.float32).tolist()
    assert y.dtype == x.dtype
    assert y.astype(np.float32).tolist() == wide.tolist()
