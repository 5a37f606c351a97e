"""The original in float32 where it computes in 16 bits, and what that allows a candidate."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from superopt.check.compare import Gap
from superopt.check.noise import MULTIPLE, PRECISE_MULTIPLE, Own, judge
from superopt.ir.onnx import Model, parse
from superopt.ir.onnx.widened import widened
from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session
from tests.check.build import DOUBLE, FLOAT16, INT64, Array, graph, model, node, normal, value

CAP = 0.05


def half(numbers: list[float]) -> Array:
    return np.array(numbers, dtype=np.float16)


def run(narrow: Model, **feeds: Array) -> dict[str, Array]:
    """What the wider model answers."""
    wide = widened(narrow)
    assert wide is not None
    with Session(wide, Deployment("cpu")) as session:
        return {name: np.asarray(found) for name, found in session.run(feeds).items()}


@pytest.mark.ort
def test_what_float16_loses_is_there_in_the_wider_model() -> None:
    """2048 + 1 is 2048 in float16."""
    nodes = [
        node("Constant", [], ["one"], value=numpy_helper.from_array(half([1]))),
        node("Add", ["x", "one"], ["a"]),
        node("Cast", ["a"], ["b"], to=FLOAT16),
        node("Sub", ["b", "x"], ["y"]),
    ]
    narrow = model(nodes, [value("x", [3], FLOAT16)], [value("y", [3], FLOAT16)])
    x = np.full(3, 2048, dtype=np.float16)
    found = run(narrow, x=x)["y"]
    assert found.dtype == np.float16
    assert found.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.ort
def test_bodies_weights_and_defaults_are_widened_too() -> None:
    body = [
        graph([node(op, ["x", "w"], [out])], [], [value(out, [2], FLOAT16)], name=op)
        for op, out in (("Add", "then"), ("Mul", "else"))
    ]
    choice = node("If", ["flag"], ["chosen"], then_branch=body[0], else_branch=body[1])
    inputs = [value("x", [2], FLOAT16), value("flag", [], TensorProto.BOOL), value("scale", [2], FLOAT16)]
    constants = {"w": half([2049, 3]), "scale": half([1, 2])}
    built = graph([choice, node("Mul", ["chosen", "scale"], ["y"])], inputs, [value("y", [2], FLOAT16)], constants)
    proto = helper.make_model(built, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    narrow, x = parse(proto.SerializeToString()), half([4, 5])
    added = run(narrow, x=x, flag=np.array(True))["y"]
    scaled = run(narrow, x=x, flag=np.array(False), scale=half([1, 1]))["y"]
    assert added.tolist() == [2052.0, 16.0]
    assert scaled.tolist() == [8192.0, 15.0]


@pytest.mark.ort
def test_float32_becomes_float64() -> None:
    """2²⁴ + 1 is 2²⁴ in float32."""
    nodes = [node("Add", ["x", "one"], ["a"]), node("Sub", ["a", "x"], ["y"])]
    single = model(nodes, [value("x", [2])], [value("y", [2])], {"one": np.ones(1, np.float32)})
    found = run(single, x=np.full(2, 1 << 24, dtype=np.float32))["y"]
    assert found.dtype == np.float32
    assert found.tolist() == [1.0, 1.0]


def test_what_cannot_be_wider_is_left_alone() -> None:
    for dtype in (DOUBLE, INT64):
        plain = model([node("Neg", ["x"], ["y"])], [value("x", [2], dtype)], [value("y", [2], dtype)])
        assert widened(plain) is None


def test_what_is_too_large_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = normal(64, 64).astype(np.float16)
    nodes = [node("MatMul", ["x", "w"], ["y"])]
    large = model(nodes, [value("x", [1, 64], FLOAT16)], [value("y", [1, 64], FLOAT16)], {"w": weight})
    assert widened(large) is not None
    monkeypatch.setattr("superopt.ir.onnx.widened.MOST_BYTES", 4096)
    assert widened(large) is None


@pytest.mark.ort
def test_an_input_that_is_an_output_stays() -> None:
    nodes = [node("Relu", ["x"], ["y"]), node("Shape", ["x"], ["s"])]
    outputs = [value("y", [2], FLOAT16), value("s", [1], INT64)]
    found = run(model(nodes, [value("x", [2], FLOAT16)], outputs), x=half([-1, 2]))
    assert found["y"].tolist() == [0.0, 2.0]
    assert found["s"].tolist() == [2]


@pytest.mark.parametrize(
    ("ratio", "own", "verdict"),
    [
        (2.0, Own(), "different"),
        (2.0, Own(moved=[Gap(ratio=2.1 / MULTIPLE)]), "widened"),
        (2.0, Own(precise=Gap(ratio=2.1 / PRECISE_MULTIPLE)), "widened"),
        (2.0, Own(precise=Gap(ratio=1.9 / PRECISE_MULTIPLE)), "different"),
        (2.0, Own(precise=Gap(ratio=9.0, structure="another shape")), "different"),
    ],
)
def test_a_candidate_may_be_off_as_far_as_the_original_allows(ratio: float, own: Own, verdict: str) -> None:
    assert judge(Gap(ratio=ratio, coarse=CAP / 2), own, CAP).verdict == verdict


def test_imprecision_never_sets_a_run_aside() -> None:
    """Noise beyond any tolerance says that nothing follows from a run; being imprecise does not."""
    gap = Gap(ratio=9.0, coarse=2 * CAP)
    assert judge(gap, Own(precise=Gap(ratio=9.0)), CAP).verdict == "different"
    assert judge(gap, Own(moved=[Gap(ratio=9.0)]), CAP).verdict == "aside"
