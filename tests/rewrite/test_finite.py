# pyright: basic
"""A rule that drops a weight is used where all of it are numbers, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from superopt.ir.graph import Constant, Value, make_node
from superopt.ir.tensor import ArrayTensor
from superopt.ir.types import DType, TensorType
from superopt.rewrite.finite import MOST, Finite
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.text import parse_rules
from superopt.verify.prove import prove
from tests.rewrite.small import every_way, model, numbers
from tests.rewrite.taking import REGISTRY

MODEL = """
g (float[5,4] x) => (float[5,4] y)
{
  s = Add(x, z)
  y = Softmax<axis = -1>(s)
}"""
ONE_MORE_INPUT = MODEL.replace("x) =>", "x, float[1] z) =>")
DROPPED = """rule dropped
  given   x: [n, m]  z: finite[1]
  y = Softmax(Add(x, z), axis=1)
  =>
  y = Softmax(x, axis=1)
"""
RULES = Rules(parse_rules(DROPPED), REGISTRY)


@pytest.mark.smt
def test_what_is_dropped_must_be_numbers() -> None:
    assert prove(parse_rules(DROPPED)[0], REGISTRY).status == "proved"
    assert prove(parse_rules(DROPPED.replace("finite", ""))[0], REGISTRY).status == "refuted", "a NaN would get lost"


@pytest.mark.ort
def test_a_number_added_to_all_drops_out() -> None:
    assert every_way(model(MODEL, z=numbers(1)), {"x": numbers(5, 4)}, RULES)


@pytest.mark.ort
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_that_is_no_number_stays(bad: float) -> None:
    assert not every_way(model(MODEL, z=np.array([bad], np.float32)), {"x": numbers(5, 4)}, RULES)


@pytest.mark.ort
def test_one_that_is_given_at_run_time_stays() -> None:
    assert not every_way(model(ONE_MORE_INPUT), {"x": numbers(5, 4), "z": numbers(1)}, RULES)


def constant(*elements: float) -> Value:
    return Value(Constant(ArrayTensor(np.array(elements, np.float32))))


def made(op: str, *operands: Value) -> Value:
    return Value(make_node(op, operands, {}, (TensorType(DType.FLOAT32, (2,)),)))


@pytest.mark.unit
def test_what_is_made_of_numbers_by_sums_and_products_is_numbers() -> None:
    finite = Finite()
    one = constant(1.0, 2.0)
    assert finite.holds(made("Mul", made("Add", one, one), constant(0.0, -1.0)))
    assert not finite.holds(made("Mul", one, constant(np.nan, 1.0)))
    assert not finite.holds(made("Div", one, constant(0.0, 1.0))), "a quotient may be infinite"


@pytest.mark.unit
def test_what_has_too_much_behind_it_is_not_looked_at() -> None:
    value = constant(1.0, 1.0)
    for _ in range(MOST):
        value = made("Neg", value)
    assert not Finite().holds(value)
