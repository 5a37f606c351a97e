# pyright: basic
"""Whether anything of 16 bits is infinite: asked by Shrink for CUDA, of each value there is; and what depends on it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from superopt.runtime.deployment import Deployment
from superopt.runtime.session import Session
from superopt.runtime.target import cuda_state
from tests.graphs import assert_same, run
from tests.normalize.models import done, held, model

pytestmark = pytest.mark.ort

ANY, LIMITS = "any-infinite-by-shrinking", "limits-of-infinite"
LEGACY = "d = Cast<to=11>(x) b = IsInf(d) i = Cast<to=7>(b) s = ReduceSum<keepdims=0>(i) c = Greater(s, zero)"
DYNAMO = "d = Cast<to=1>(x) b = IsInf(d) i = Cast<to=7>(b) s = ReduceMax<keepdims=0>(i) c = Cast<to=9>(s)"
CLIPPED = "w = Where(c, less, most) n = Neg(w) l = Cast<to=10>(n) h = Cast<to=10>(w) y = Clip(x, l, h)"
IN_TWO = "w = Where(c, less, most) n = Neg(w) l = Cast<to=10>(n) h = Cast<to=10>(w) m = Max(x, l) y = Min(m, h)"
CONSTANTS = "int64 zero = {0}, float less = {64504}, float most = {65504}"
EVERY = np.arange(65536, dtype=np.uint16).view(np.float16)
FINITE, INFINITE, NONE = EVERY[np.isfinite(EVERY)], EVERY[np.isinf(EVERY)], EVERY[np.isnan(EVERY)]
"""All that there is of each kind."""


def network(body: str, constants: str = CONSTANTS, x: str = "float16[2,4]", y: str = "float16[2,4] y") -> bytes:
    return model(f"g ({x} x) => ({y}) <{constants}> {{ {body} }}")


def drawn(*rest: float) -> np.ndarray:
    """Eight numbers, of which these are the last."""
    x = np.array([1, -2.5, 65504, -65504, 64510, -64600, 0, 6e-8], np.float16)
    x[len(x) - len(rest) :] = rest
    return x.reshape(2, 4)


@pytest.mark.parametrize("question", [LEGACY, DYNAMO])
@pytest.mark.parametrize("limits", [CLIPPED, IN_TWO])
def test_a_network_of_t5_asks_by_shrink_and_clips_only_then(question: str, limits: str) -> None:
    data = network(f"{question} {limits}")
    outcome = held(data, {"x": drawn()}, for_cuda=True)
    assert outcome.ops == ["Shrink", "ReduceSum", "Equal", "Clip", "Where"]
    assert {ANY, LIMITS} <= set(outcome.names)
    inf, nan = np.inf, np.nan
    for rest in [(), (inf,), (-inf,), (inf, -inf), (nan,), (nan, nan), (nan, inf), (-inf, nan), (inf, inf)]:
        feeds = {"x": drawn(*rest)}
        expected, found = run(data, feeds), run(outcome.after, feeds)
        assert_same(expected, found)
        largest = np.float16(64504) if any(map(np.isinf, rest)) else 65504
        assert np.nanmax(np.abs(found[0].astype(np.float32))) == largest


def test_of_every_value_it_is_known_whether_it_is_infinite() -> None:
    data = network("d = Cast<to=1>(x) b = IsInf(d) i = Cast<to=7>(b) s = ReduceSum(i, axes) y = Greater(s, zero)",
                   "int64[1] axes = {1}, int64 zero = {0}", "float16[65536,1]", "bool[65536,1] y")  # fmt: skip
    outcome = done(data, for_cuda=True)
    assert outcome.ops == ["Shrink", "ReduceSum", "Equal", "Not"]
    [found] = run(outcome.after, {"x": EVERY[:, None]})
    assert np.array_equal(found[:, 0], np.isinf(EVERY))


def test_nothing_finite_and_no_nan_hides_what_is_infinite() -> None:
    data = network(f"{LEGACY} y = Identity(c)", "int64 zero = {0}", "float16[n]", "bool y")
    outcome = done(data, for_cuda=True)
    for parts, answer in [
        ([FINITE], False), ([NONE], False), ([FINITE, NONE], False), ([FINITE, INFINITE[:1]], True),
        ([NONE, INFINITE[:1]], True), ([FINITE, NONE, INFINITE], True), ([INFINITE], True), ([], False),
    ]:  # fmt: skip
        x = np.concatenate([*parts, np.zeros(0, np.float16)])
        [found] = run(outcome.after, {"x": x})
        assert found == answer


def test_a_sum_that_overflows_is_infinite_as_onnx_has_it() -> None:
    """onnxruntime's CPU provider does not round the original's sum to float16, and finds it finite."""
    data = network(f"a = Add(x, x) {LEGACY} {CLIPPED}".replace("(x)", "(a)").replace("Clip(x", "Clip(a"))
    outcome = done(data, for_cuda=True)
    assert LIMITS in outcome.names
    for x in (drawn(1, 2), drawn(3, 40000), drawn(1, np.nan), drawn(np.nan, -50000)):
        feeds = {"x": x}
        with np.errstate(over="ignore"):
            expected = ReferenceEvaluator(onnx.load_from_string(data)).run(None, feeds)
        assert_same([np.asarray(value) for value in expected], run(outcome.after, feeds))


@pytest.mark.gpu
@pytest.mark.parametrize("deterministic", [True, False])
def test_on_the_device_the_answers_are_the_same(deterministic: bool) -> None:
    if not cuda_state().works:
        pytest.skip(cuda_state().reason)
    data = model(f"g (float16[n] x) => (float16[n] y, bool c) <{CONSTANTS}> {{ {LEGACY} {CLIPPED} }}")
    after = done(data, for_cuda=True).after
    with Session(after, Deployment("cuda", 1, deterministic=deterministic)) as session:
        for parts in ([FINITE], [FINITE, NONE], [FINITE, INFINITE], [FINITE, NONE, INFINITE[1:]], [INFINITE, INFINITE]):
            feeds = {"x": np.concatenate(parts)}
            expected, found = run(data, feeds), session.run(feeds)
            assert_same(expected, [np.asarray(value) for value in found.values()])


def test_a_cpu_is_asked_as_before() -> None:
    names = done(network(f"{LEGACY} {CLIPPED}")).names
    assert ANY not in names
    assert LIMITS not in names


@pytest.mark.parametrize(
    "question",
    [
        LEGACY.replace("IsInf(d)", "IsInf<detect_negative=0>(d)"),
        LEGACY.replace("IsInf", "IsNaN"),
        LEGACY.replace("Greater(s, zero)", "Greater(s, one)"),
        f"{LEGACY} again = Identity(i)",  # the truths are wanted, too
        f"d = Cast<to=1>(x) f = Mul(d, d) {LEGACY.replace('d = Cast<to=11>(x)', '').replace('(d)', '(f)')}",  # float32
    ],
)
def test_another_question_is_left_alone(question: str) -> None:
    extra = ", int64[2,4] again" if "again" in question else ""
    data = network(f"{question} {CLIPPED}", f"{CONSTANTS}, int64 one = {{1}}", y=f"float16[2,4] y{extra}")
    assert ANY not in done(data, for_cuda=True).names


def test_the_largest_of_nothing_is_not_asked_for() -> None:
    data = network(f"{DYNAMO} y = Identity(c)", CONSTANTS, "float16[n]", "bool y")
    assert ANY not in done(data, for_cuda=True).names


@pytest.mark.parametrize(
    ("limits", "constants"),
    [
        (CLIPPED.replace("Clip(x", "Clip(other"), CONSTANTS),  # of something else
        (CLIPPED, CONSTANTS.replace("65504", "65472")),  # what is finite is clipped, too
        (CLIPPED.replace("Where(c, less, most)", "Where(c, most, less)"), CONSTANTS),
        (CLIPPED, CONSTANTS.replace("64504", "-64504")),  # limits the wrong way round
    ],
)
def test_other_limits_stay(limits: str, constants: str) -> None:
    data = network(f"other = Neg(x) {LEGACY} {limits}", constants)
    assert LIMITS not in done(data, for_cuda=True).names


def test_an_answer_for_each_row_leaves_limits_alone() -> None:
    """Clip takes one limit each, so that rows come as a Max and a Min."""
    rows = LEGACY.replace("ReduceSum<keepdims=0>(i)", "ReduceSum<keepdims=1>(i, axes)")
    data = network(f"{rows} {IN_TWO}", f"{CONSTANTS}, int64[1] axes = {{1}}")
    outcome = held(data, {"x": drawn(np.inf)}, for_cuda=True)
    assert ANY in outcome.names
    assert LIMITS not in outcome.names


@pytest.mark.parametrize("opset", [12, 13, 17])
@pytest.mark.parametrize("reduction", ["ReduceMax", "ReduceSum"])
def test_axes_are_given_as_the_opset_has_them(opset: int, reduction: str) -> None:
    asked = "d = Cast<to=1>(x) b = IsInf(d) i = Cast<to=7>(b)"
    by_input = reduction == "ReduceSum" and opset >= 13
    reduced = f"{reduction}(i, axes)" if by_input else f"{reduction}<axes=[0,1]>(i)"
    body = f"{asked} s = {reduced} c = Cast<to=9>(s) {IN_TWO}"
    constants = f"{CONSTANTS}, int64[2] axes = {{0,1}}" if by_input else CONSTANTS
    data = model(f"g (float16[2,4] x) => (float16[2,4] y) <{constants}> {{ {body} }}", opset=opset)
    for rest in ((), (np.inf,), (np.nan, -np.inf)):
        outcome = held(data, {"x": drawn(*rest)}, for_cuda=True)
        assert {ANY, LIMITS} <= set(outcome.names)


def test_a_choice_by_what_is_not_is_turned() -> None:
    data = model("g (bool[n] c, float[n] a, float[n] b) => (float[n] y) { d = Not(c) y = Where(d, a, b) }")
    outcome = held(data, {"c": np.array([True, False, True])})
    assert outcome.names == ["choice-by-not"]
    assert outcome.ops == ["Where"]
