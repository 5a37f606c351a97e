"""Weights combined in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from superopt.ir.graph import Attribute, Constant, Node, Value, make_node, make_parameter
from superopt.ir.onnx import Model, parse
from superopt.ir.tensor import Array, ArrayTensor, dtype_of
from superopt.ir.types import DType, TensorType
from superopt.rewrite.rounding import rounded
from superopt.rewrite.weights import CannotCombine, combine, combined_bytes
from tests.normalize.models import model as model_bytes

pytestmark = pytest.mark.ort

F32, F16, BF16 = np.float32, np.float16, ml_dtypes.bfloat16


def shell(opset: int = 18) -> Model:
    return parse(model_bytes("g (float[1] x) => (float[1] y) { y = Identity(x) }", opset=opset))


def constant(array: Array) -> Value:
    return Value(Constant(ArrayTensor(np.array(array))))


def node(op: str, inputs: list[Value | None], *results: tuple[Any, tuple[int, ...]], **attributes: Attribute) -> Node:
    types = [TensorType(dtype_of(np.zeros(0, dtype)), shape) for dtype, shape in results]
    return make_node(op, inputs, attributes, types)


def one(op: str, inputs: list[Value | None], dtype: Any, shape: tuple[int, ...], **attributes: Attribute) -> Value:
    return Value(node(op, inputs, (dtype, shape), **attributes))


def draw(*shape: int, seed: int = 0, dtype: Any = F32) -> Array:
    return np.random.default_rng([seed, *shape]).uniform(0.5, 2.0, shape).astype(dtype)


def ints(*values: int) -> Value:
    return constant(np.array(values, np.int64))


A, B, SQUARE = draw(3, 4), draw(3, 4, seed=1), draw(3, 3)
W, V = draw(4, 3, 1, 1), draw(5, 4, 3, 3, seed=1)

Plain = Callable[..., Array]
ELEMENTWISE: dict[str, tuple[Plain, int]] = {
    "Add": (np.add, 2), "Sub": (np.subtract, 2), "Mul": (np.multiply, 2), "Div": (np.divide, 2),
    "Pow": (np.power, 2), "Max": (np.maximum, 2), "Min": (np.minimum, 2), "Neg": (np.negative, 1),
    "Sqrt": (np.sqrt, 1), "Reciprocal": (lambda x: 1 / x, 1), "Exp": (np.exp, 1), "Log": (np.log, 1),
    "Abs": (np.abs, 1), "Identity": (lambda x: x, 1),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [F32, F16, BF16])
@pytest.mark.parametrize("op", ELEMENTWISE)
def test_elementwise(op: str, dtype: Any) -> None:
    plain, count = ELEMENTWISE[op]
    arrays = [A.astype(dtype), B.astype(dtype)][:count]
    value = one(op, [constant(a) for a in arrays], dtype, (3, 4))
    found = combine(shell(), [value])[value].numpy()
    expected = plain(*(a.astype(np.float64) for a in arrays))
    np.testing.assert_array_equal(found, rounded(expected, dtype_of(found)))
    assert found.dtype == dtype


def windows(x: Array, filters: Array, pad: int) -> Array:
    """Conv, written as sums over a window."""
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    seen = np.lib.stride_tricks.sliding_window_view(x, filters.shape[2:], axis=(2, 3))  # pyright: ignore[reportCallIssue, reportArgumentType]
    return np.einsum("nchwij,ocij->nohw", seen, filters)


def others() -> dict[str, tuple[Value, Array]]:
    """A value for each operator that moves, multiplies or sums; and what numpy makes of it in float64."""
    a, b, square, w, v = map(constant, (A, B, SQUARE, W, V))
    wide = {k: x.astype(np.float64) for k, x in {"a": A, "b": B, "square": SQUARE, "w": W, "v": V}.items()}
    eye = one("EyeLike", [square], F32, (3, 3))
    filled = one("ConstantOfShape", [ints(3, 4)], F16, (3, 4), value=ArrayTensor(np.array([0.1], F16)))
    zeros = one("ConstantOfShape", [ints(3, 4)], F32, (3, 4))
    turned = one("Transpose", [w], F32, (3, 4, 1, 1), perm=(1, 0, 2, 3))
    halves = node("Split", [a, ints(1, 2)], (F32, (1, 4)), (F32, (2, 4)), axis=0)
    return {
        "Concat": (one("Concat", [a, b], F32, (6, 4), axis=0), np.concatenate([wide["a"], wide["b"]])),
        "Split": (Value(halves, 1), wide["a"][1:]),
        "Slice": (one("Slice", [a, ints(1), ints(3), ints(1)], F32, (3, 2)), wide["a"][:, 1:3]),
        "Transpose": (one("Transpose", [a], F32, (4, 3), perm=(1, 0)), wide["a"].T),
        "Reshape": (one("Reshape", [a, ints(2, -1)], F32, (2, 6)), wide["a"].reshape(2, 6)),
        "Squeeze": (one("Squeeze", [w, ints(2, 3)], F32, (4, 3)), wide["w"][:, :, 0, 0]),
        "Unsqueeze": (one("Unsqueeze", [a, ints(0)], F32, (1, 3, 4)), wide["a"][None]),
        "Flatten": (one("Flatten", [v], F32, (5, 36)), wide["v"].reshape(5, 36)),
        "Expand": (one("Expand", [a, ints(2, 3, 4)], F32, (2, 3, 4)), np.stack([wide["a"]] * 2)),
        "Tile": (one("Tile", [a, ints(2, 1)], F32, (6, 4)), np.tile(wide["a"], (2, 1))),
        "Pad": (one("Pad", [a, ints(0, 1, 0, 2)], F32, (3, 7)), np.pad(wide["a"], ((0, 0), (1, 2)))),
        "Gather": (one("Gather", [a, ints(2, 0)], F32, (2, 4)), wide["a"][[2, 0]]),
        "Where": (
            one("Where", [constant(A > 1), a, b], F32, (3, 4)),
            np.where(A > 1, wide["a"], wide["b"]),
        ),
        "MatMul": (one("MatMul", [square, a], F32, (3, 4)), wide["square"] @ wide["a"]),
        "Gemm": (
            one("Gemm", [a, b, square], F32, (3, 3), alpha=0.5, transB=1),
            0.5 * wide["a"] @ wide["b"].T + wide["square"],
        ),
        "Einsum": (
            one("Einsum", [a, b], F32, (3, 3), equation="ik,jk->ij"),
            wide["a"] @ wide["b"].T,
        ),
        "Conv": (
            one("Conv", [turned, v], F32, (3, 5, 3, 3), pads=(2,) * 4),
            windows(wide["w"].transpose(1, 0, 2, 3), wide["v"], 2),
        ),
        "ReduceSum": (one("ReduceSum", [a, ints(1)], F32, (3, 1)), wide["a"].sum(axis=1, keepdims=True)),
        "ReduceMean": (one("ReduceMean", [a, ints(0)], F32, (4,), keepdims=0), wide["a"].mean(axis=0)),
        "EyeLike": (one("Add", [eye, square], F32, (3, 3)), np.eye(3) + wide["square"]),
        "ConstantOfShape": (one("Sub", [zeros, a], F32, (3, 4)), -wide["a"]),
        "ConstantOfShape of float16": (filled, np.full((3, 4), np.float64(F16(0.1)))),
        "Cast": (one("Mul", [one("Cast", [a], F16, (3, 4), to=10), a], F32, (3, 4)), wide["a"] ** 2),
        "Cast of integers": (one("Cast", [ints(3, 16_777_217)], F32, (2,), to=1), np.array([3.0, 16_777_217.0])),
    }  # fmt: skip


@pytest.mark.parametrize("name", others())
def test_other_operators(name: str) -> None:
    value, expected = others()[name]
    found = combine(shell(), [value])[value].numpy()
    assert found.shape == expected.shape
    # Sums may be taken in another order: that moves float64, and seldom the number it is rounded to.
    np.testing.assert_allclose(found, expected.astype(found.dtype), rtol=np.finfo(found.dtype).eps, atol=0)


@pytest.mark.parametrize("opset", [7, 11, 26])
def test_versions_without_a_kernel_for_float64(opset: int) -> None:
    value = one("Max", [constant(A), constant(B)], F32, (3, 4))
    found = combine(shell(opset), [value])[value].numpy()
    np.testing.assert_array_equal(found, np.maximum(A, B))


def test_rounds_once() -> None:
    """1 + 2⁻²⁴ + 2⁻²⁴: each addition alone is lost in float32, both together are its last digit."""
    one_, tiny = constant(np.array([1.0], F32)), constant(np.array([2.0**-24], F32))
    value = one("Add", [one("Add", [one_, tiny], F32, (1,)), tiny], F32, (1,))
    assert combine(shell(), [value])[value].numpy()[0] == 1 + 2.0**-23
    assert F32(1) + F32(2.0**-24) + F32(2.0**-24) == 1


def test_rounds_to_bfloat16_in_one_step() -> None:
    """Just above the middle of 1 and its successor: by way of float32 it would be the middle, and so 1."""
    numbers = np.array([1 + 2.0**-8 + 2.0**-40, -1 - 2.0**-8 - 2.0**-40, 1 + 2.0**-8, 1 + 3 * 2.0**-8 - 2.0**-40])
    found = rounded(numbers, DType.BFLOAT16).astype(np.float64)
    assert found.tolist() == [1 + 2.0**-7, -1 - 2.0**-7, 1, 1 + 2.0**-7]
    assert not np.isfinite(rounded(np.array([1e300, -1e39]), DType.BFLOAT16)).any()


def test_bfloat16_rounding_is_the_nearest() -> None:
    numbers = np.random.default_rng(0).normal(size=5000) * 10.0 ** np.random.default_rng(1).integers(-30, 30, 5000)
    found = rounded(numbers, DType.BFLOAT16).astype(np.float64)
    bits = found.astype(F32).view(np.uint32)
    for step in (-0x10000, 0x10000):
        neighbour = (bits.astype(np.int64) + step).astype(np.uint32).view(F32).astype(np.float64)
        assert (np.abs(found - numbers) <= np.abs(neighbour - numbers)).all()


@pytest.mark.parametrize(("dtype", "large"), [(F16, 300.0), (BF16, 1e30), (F32, 1e30)])
def test_overflow_is_refused(dtype: Any, large: float) -> None:
    a = constant(np.full((2, 2), large, dtype))
    with pytest.raises(CannotCombine, match=f"overflows {dtype_of(np.zeros(0, dtype))}"):
        combine(shell(), [one("MatMul", [a, a], dtype, (2, 2))])


def test_what_comes_back_into_range_is_no_overflow() -> None:
    a, small = constant(np.full(1, 300, F16)), constant(np.full(1, 2.0**-10, F16))
    value = one("Mul", [one("Mul", [a, a], F16, (1,)), small], F16, (1,))
    assert combine(shell(), [value])[value].numpy()[0] == F16(90000 / 1024)


def test_finite_numbers_must_stay_finite() -> None:
    value = one("Div", [constant(np.ones(1, F32)), constant(np.zeros(1, F32))], F32, (1,))
    with pytest.raises(CannotCombine, match="not finite"):
        combine(shell(), [value])


def test_infinite_weights_stay_infinite() -> None:
    mask = constant(np.array([-np.inf, 1.0], F32))
    value = one("Add", [mask, constant(np.ones(2, F32))], F32, (2,))
    assert combine(shell(), [value])[value].numpy().tolist() == [-np.inf, 2.0]
    filled = one("ConstantOfShape", [ints(2)], F32, (2,), value=ArrayTensor(np.array([-np.inf], F32)))
    assert combine(shell(), [filled])[filled].numpy().tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("op", ["RandomNormalLike", "NoSuchOperator"])
def test_operators_without_an_evaluation(op: str) -> None:
    with pytest.raises(CannotCombine, match=op):
        combine(shell(), [one(op, [constant(A)], F32, (3, 4))])


def test_inputs_are_refused() -> None:
    x = Value(make_parameter(0, TensorType(DType.FLOAT32, (3, 4))))
    with pytest.raises(CannotCombine, match="depends on an input"):
        combine(shell(), [one("Add", [x, constant(A)], F32, (3, 4))])


def test_a_shape_that_turns_out_otherwise_is_refused() -> None:
    with pytest.raises(CannotCombine, match="expected the shape"):
        combine(shell(), [one("Add", [constant(A), constant(B)], F32, (4, 3))])


def test_integers_stay_integers_and_never_trap() -> None:
    a = ints(7, 2**60 + 1)
    value = one("Mul", [a, ints(3, 1)], np.int64, (2,))
    assert combine(shell(), [value])[value].numpy().tolist() == [21, 2**60 + 1]
    with pytest.raises(CannotCombine, match="divided by 0"):
        combine(shell(), [one("Div", [a, ints(1, 0)], np.int64, (2,))])


def test_constant_nodes_are_leaves() -> None:
    held = one("Constant", [], F32, (3, 4), value=ArrayTensor(A.copy()))
    number = one("Constant", [], F32, (), value_float=0.5)
    value = one("Mul", [held, number], F32, (3, 4))
    np.testing.assert_array_equal(combine(shell(), [value])[value].numpy(), A * F32(0.5))


def test_constants_come_back_as_they_are() -> None:
    a = constant(A)
    assert combine(shell(), [a])[a] is a.constant


def test_memory_is_bounded() -> None:
    a = constant(draw(64, 64))
    square = one("MatMul", [a, a], F32, (64, 64))
    value = square
    for _ in range(20):
        value = one("Neg", [value], F32, (64, 64))
    one_matrix = 64 * 64 * 8
    with pytest.raises(CannotCombine, match="bound"):
        combine(shell(), [value], bound=2 * one_matrix - 1)
    assert value in combine(shell(), [value], bound=2 * one_matrix)  # what is read is let go, however long the chain


def test_a_large_result_is_refused_before_it_is_made() -> None:
    with pytest.raises(CannotCombine, match="bound"):
        combine(shell(), [one("Expand", [constant(A[:1, :1]), ints(1 << 20, 1 << 20)], F32, (1 << 20, 1 << 20))])


def test_shared_work_and_determinism() -> None:
    a, square = constant(draw(40, 40)), constant(draw(40, 40, seed=1))
    shared = one("MatMul", [a, square], F32, (40, 40))
    both = [one("Neg", [shared], F32, (40, 40)), one("MatMul", [shared, a], F32, (40, 40)), shared]
    first, second = (combine(shell(), both) for _ in range(2))
    assert list(first) == both
    assert [t.digest for t in first.values()] == [t.digest for t in second.values()]
    assert combined_bytes([*both, shared]) == 3 * 40 * 40 * 4


def test_a_chain_of_many_nodes_needs_no_deep_stack() -> None:
    value = constant(np.zeros(1, F32))
    for _ in range(1500):
        value = one("Neg", [value], F32, (1,))
    assert combined_bytes([value]) == 4
    assert combine(shell(), [value])[value].numpy().tolist() == [0.0]
