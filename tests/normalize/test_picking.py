# pyright: basic
"""A function of one of two constants is one of two constants. Whether numbers are infinite is not asked of doubles."""

from __future__ import annotations

import numpy as np
import pytest

from tests.normalize.models import done, held, model

pytestmark = pytest.mark.ort

PICKED = "function-of-choice"
ASKED = "asked-of-doubles"
BOTH = {"c": np.array([True, False, True])}


@pytest.mark.parametrize("option", ["float", "float[1]"])
def test_limits_that_are_cast_and_negated_are_picked_as_they_are(option: str) -> None:
    body = "w = Where(c, a, b) n = Neg(w) low = Cast<to=10>(n) high = Cast<to=10>(w)"
    limits = f"{option} a = {{64504}}, {option} b = {{70000}}"
    data = model(f"g (bool[n] c) => (float16[n] low, float16[n] high) <{limits}> {{ {body} }}")
    outcome = held(data, BOTH)
    assert set(outcome.names) >= {PICKED}
    assert outcome.ops == ["Where", "Where"]  # of 70000, float16 makes infinity, before as after


@pytest.mark.parametrize(
    "body",
    [
        "w = Where(c, x, b) y = Neg(w)",  # one of them is no constant
        "w = Where(c, a, b) y = Abs(w)",  # nobody has asked for others yet
    ],
)
def test_others_are_left_alone(body: str) -> None:
    data = model(f"g (bool[n] c, float[n] x) => (float[n] y) <float a = {{1}}, float b = {{2}}> {{ {body} }}")
    assert PICKED not in done(data).names


def test_integers_are_cast_as_the_runtime_does_it() -> None:
    data = model(
        "g (bool[n] c) => (int32[n] y) <float a = {3e9}, float b = {2}> { w = Where(c, a, b) y = Cast<to=6>(w) }"
    )
    assert PICKED not in done(data).names


@pytest.mark.parametrize(("source", "ops"), [("float16", ["Cast", "IsNaN"]), ("float", ["IsNaN"])])
def test_numbers_of_fewer_bits_are_not_asked_as_doubles(source: str, ops: list[str]) -> None:
    data = model(f"g ({source}[n] x) => (bool[n] y) {{ d = Cast<to=11>(x) y = IsNaN(d) }}")
    kind = np.float16 if source == "float16" else np.float32
    outcome = held(data, {"x": np.array([1, np.nan, np.inf, -np.inf, 6e-8], kind)})
    assert outcome.names.count(ASKED) == 1
    assert outcome.ops == ops
    assert all(a.i == 1 for n in outcome.proto.graph.node if n.op_type == "Cast" for a in n.attribute if a.name == "to")


def test_infinities_of_one_sign_stay_those() -> None:
    data = model("g (float[n] x) => (bool[n] y) { d = Cast<to=11>(x) y = IsInf<detect_negative=0>(d) }")
    outcome = held(data, {"x": np.array([1, np.inf, -np.inf], np.float32)})
    assert outcome.ops == ["IsInf"]
    assert ASKED in outcome.names


def test_doubles_are_asked_as_doubles() -> None:
    data = model(
        "g (double[n] x, int64[n] i) => (bool[n] y, bool[n] z) { y = IsInf(x) d = Cast<to=11>(i) z = IsInf(d) }"
    )
    assert ASKED not in done(data).names
