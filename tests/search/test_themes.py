"""Which candidates are variations on one theme."""

from __future__ import annotations

import pytest

from superopt.ir.graph import Node, Parameter, Value, make_node
from superopt.ir.types import DType, TensorType
from superopt.search.themes import theme

pytestmark = pytest.mark.unit


def node(op: str, *shape: int | None, domain: str = "") -> Node:
    x = Value(Parameter(0, TensorType(DType.FLOAT32, (2, 3)), captured=False))
    known = tuple(n for n in shape if n is not None)
    return make_node(
        op, (x,), {}, (TensorType(DType.FLOAT32, known if len(known) == len(shape) else None),), domain=domain
    )


def test_views_and_spellings_of_a_product_make_no_other_theme() -> None:
    plain = theme([node("MatMul", 8, 64), node("Add", 8, 64)])
    assert theme([node("Reshape", 2, 4, 64), node("Gemm", 8, 64), node("Add", 8, 64)]) == plain
    assert theme([node("FusedMatMul", 8, 64, domain="com.microsoft"), node("Add", 8, 64)]) == plain


def test_neither_do_spellings_of_functions_and_what_is_too_small_to_matter() -> None:
    plain = theme([node("MatMul", 64, 64), node("Relu", 64, 64), node("ReduceMean", 64, 1)])
    assert theme([node("MatMul", 64, 64), node("Max", 64, 64), node("ReduceSum", 64, 1), node("Div", 64, 1)]) == plain
    assert theme([node("MatMul", 64, 64), node("Max", 64, 64), node("ReduceSum", 64, 1), node("Div", 64, 64)]) != plain


def test_other_operators_other_numbers_and_other_sizes_do() -> None:
    plain = theme([node("MatMul", 8, 64), node("Add", 8, 64)])
    assert theme([node("MatMul", 8, 64), node("Softmax", 8, 64)]) != plain
    assert theme([node("MatMul", 8, 64), node("Add", 8, 64), node("Add", 8, 64)]) != plain
    assert theme([node("MatMul", 64, 64), node("Add", 8, 64)]) != plain


def test_a_size_that_is_not_known_is_like_any_other_that_is_not() -> None:
    assert theme([node("MatMul", None, 64)]) == theme([node("MatMul", None, 7)])
