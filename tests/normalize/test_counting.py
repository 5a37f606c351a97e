# pyright: basic
"""Whether any of many is true: counted in floats, and left alone where something else is asked."""

from __future__ import annotations

import numpy as np
import pytest

from tests.normalize.models import done, held, model

pytestmark = pytest.mark.ort

NAME = "any-counted-in-floats"
AXES = "int64[1] axes = {1}, int64 zero = {0}"


def asked(question: str, constants: str = AXES, out: str = "bool[n] y") -> bytes:
    return model(f"g (float[n,4] x) => ({out}) <{constants}> {{ b = IsInf(x) {question} }}")


@pytest.mark.parametrize("to", [6, 7])
@pytest.mark.parametrize("constants", [AXES, "int64[1] axes = {1}, int64[1] zero = {0}"])
def test_the_question_is_answered_in_floats(to: int, constants: str) -> None:
    if to == 6:
        constants = constants.replace("int64 zero", "int32 zero").replace("int64[1] zero", "int32[1] zero")
    data = asked(f"c = Cast<to={to}>(b) s = ReduceSum<keepdims=0>(c, axes) y = Greater(s, zero)", constants)
    some = np.zeros((3, 4), np.float32)
    some[1, 2] = np.inf
    outcome = held(data, {"x": some})
    assert outcome.names == [NAME]
    assert outcome.ops == ["IsInf", "Cast", "ReduceSum", "Greater"]
    cast = next(node for node in outcome.proto.graph.node if node.op_type == "Cast")
    assert cast.attribute[0].i == 1


def test_over_all_axes_and_shared_by_several_questions() -> None:
    count = "c = Cast<to=7>(b) s = ReduceSum<keepdims=0>(c) t = Greater(s, zero)"
    outcome = held(asked(f"{count} u = Not(t) y = Or(t, u)", "int64 zero = {0}", "bool y"))
    assert outcome.names == [NAME]


@pytest.mark.parametrize(
    "question",
    [
        "c = Cast<to=7>(x) s = ReduceSum<keepdims=0>(c, axes) y = Greater(s, zero)",  # numbers, not truths
        "c = Cast<to=7>(b) s = ReduceSum<keepdims=0>(c, axes) y = Greater(s, one)",  # whether two are
        "c = Cast<to=7>(b) s = ReduceSum<keepdims=0>(c, axes) y = Greater(zero, s)",
        "c = Cast<to=7>(b) s = ReduceMax<axes=[1], keepdims=0>(c) y = Greater(s, zero)",
        "c = Cast<to=7>(b) s = ReduceSum<keepdims=0>(c, axes) d = Greater(s, zero) e = Greater(s, one) y = And(d, e)",
    ],
)
def test_another_question_is_left_alone(question: str) -> None:
    data = asked(question, f"{AXES}, int64 one = {{1}}")
    assert NAME not in done(data).names
