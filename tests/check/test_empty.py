"""Sizes of 0: what the original takes the candidate has to take, and nobody dies of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from superopt.check import Checker, Request, empty
from superopt.check.empty import Careful
from superopt.check.tolerance import rule_of
from superopt.check.traits import Traits
from superopt.ir.onnx import Model
from superopt.ir.types import DType
from superopt.runtime.careful import Undecided
from tests.check.build import BOOL, FLOAT, INT64, compared, graph, model, node, normal, value

WEIGHT = normal(4, 3)


def pointwise(*, as_product: bool = False) -> Model:
    """Over the channels of [n, 3, 5]; the product stretches its matrix over the batch, which onnxruntime refuses to do
    over none."""
    ends = [value("x", ["n", 3, 5])], [value("y", ["n", 4, 5])]
    if as_product:
        return model([node("MatMul", ["w", "x"], ["y"])], *ends, {"w": WEIGHT})
    return model([node("Conv", ["x", "w"], ["y"])], *ends, {"w": WEIGHT.reshape(4, 3, 1)})


def turned(*, fused: bool) -> Model:
    """[s, 2, 3] by [2, 3, 4], its batch in the middle: fused, the kernel divides by s."""
    ends = [value("x", ["s", 2, 3])], [value("y", None)]
    if fused:
        own = node("FusedMatMul", ["x", "w"], ["p"], domain="com.microsoft", transBatchA=1)
        nodes = [own, node("Identity", ["p"], ["y"])]
    else:
        by_batch = node("Transpose", ["x"], ["t"], perm=[1, 0, 2])
        # Not next to each other, or onnxruntime itself would fuse them.
        nodes = [by_batch, node("Relu", ["t"], ["r"]), node("Neg", ["t"], ["m"]), node("Relu", ["m"], ["q"])]
        nodes += [node("Sub", ["r", "q"], ["d"]), node("MatMul", ["d", "w"], ["y"])]
    return model(nodes, *ends, {"w": normal(2, 3, 4)}, domains=["com.microsoft"])


def test_what_the_original_takes_the_candidate_must_not_refuse() -> None:
    assert compared(pointwise(), pointwise()).status == "equal"
    found = compared(pointwise(), pointwise(as_product=True))
    assert found.status == "different"
    assert "refuses what the original accepts (nothing in n, n=0)" in found.reason


def test_what_the_original_refuses_is_no_matter() -> None:
    assert compared(pointwise(as_product=True), pointwise()).status == "equal"


def test_a_candidate_that_dies_of_it_takes_nobody_along() -> None:
    found = compared(turned(fused=False), turned(fused=True))
    assert found.status == "different"
    assert "nothing in s, s=0" in found.reason
    assert "SIGFPE" in found.reason


def test_an_original_that_dies_of_it_is_asked_no_more() -> None:
    assert compared(turned(fused=True), turned(fused=False)).status == "equal"


@pytest.mark.parametrize(
    ("original", "never"),
    [(pointwise(), frozenset[str]()), (pointwise(as_product=True), None), (turned(fused=True), None)],
    ids=["takes it", "refuses it", "dies of it"],
)
def test_it_is_told_which_sizes_are_never_0(original: Model, never: frozenset[str] | None) -> None:
    with closing(Checker(original, Request())) as checker:
        assert checker.never_empty(lambda _: None) == never


def test_one_size_may_be_0_and_another_not() -> None:
    """A mean of nothing is refused; no rows of something are not."""
    nodes = [node("ArgMax", ["x"], ["k"], axis=1), node("Cast", ["k"], ["y"], to=FLOAT)]
    rows = model(nodes, [value("x", ["n", "m"])], [value("y", ["n", 1])])
    with closing(Checker(rows, Request())) as checker:
        assert checker.never_empty(lambda _: None) == {"m"}


def test_a_model_too_large_to_be_opened_twice_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(empty, "LARGEST", 0)
    found = compared(pointwise(), pointwise(as_product=True))
    assert found.status == "equal"
    assert any("too large to be opened twice" in note for note in found.notes)


def test_what_is_inside_of_the_model_is_found_too() -> None:
    """A branch that is taken."""
    inner = graph([node("MatMul", ["w", "x"], ["z"])], [], [value("z", None)])
    chosen = node("If", ["c"], ["y"], then_branch=inner, else_branch=inner)
    ends = [value("x", ["n", 3, 5])], [value("y", ["n", 4, 5])]
    branched = model([chosen], *ends, {"w": WEIGHT, "c": True})
    assert compared(pointwise(), branched).status == "different"


def test_a_loop_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting what is left until it is 1: from 0 on, that takes forever."""
    monkeypatch.setattr(empty, "PATIENCE", 3.0)
    body = graph(
        [
            node("Sub", ["k", "one"], ["less"]),
            node("Equal", ["less", "zero"], ["is_last"]),
            node("Not", ["is_last"], ["goes_on"]),
        ],
        [value("i", [], INT64), value("c", [], BOOL), value("k", [], INT64)],
        [value("goes_on", [], BOOL), value("less", [], INT64)],
    )
    nodes = [
        node("Shape", ["x"], ["size"], end=1),
        node("Squeeze", ["size"], ["n"]),
        node("Loop", ["", "yes", "n"], ["left"], body=body),
        node("Cast", ["left"], ["f"], to=FLOAT),
        node("Add", ["x", "f"], ["y"]),
    ]
    constants = {"one": np.array(1), "zero": np.array(0), "yes": np.array(True)}
    counting = model(nodes, [value("x", ["n"])], [value("y", ["n"])], constants)
    with closing(Checker(counting, Request())) as checker:
        assert checker.never_empty(lambda _: None) is None
    assert compared(counting, counting).status == "equal"


def test_what_an_empty_answer_is_says_nothing_of_how_close_others_must_be() -> None:
    """A product of nothing is 1, and all others are tiny."""
    ends = [value("x", ["n", "m"])], [value("y", ["n"])]
    constants = {"axes": np.array([1]), "tiny": np.array(1e-9, np.float32)}

    def product(*, of: str) -> Model:
        nodes = [node("Mul", ["x", "tiny"], ["t"]), node(of, ["t"], ["u"])]
        return model([*nodes, node("ReduceProd", ["u", "axes"], ["y"], keepdims=0)], *ends, constants)

    assert compared(product(of="Identity"), product(of="Identity")).status == "equal"
    assert compared(product(of="Identity"), product(of="Abs")).status == "different"


@pytest.mark.parametrize(("answer", "status"), [("Identity", "equal"), ("Neg", "equal"), ("Exp", "different")])
def test_answers_to_nothing_are_compared_too(answer: str, status: str) -> None:
    """A sum of nothing is 0, as is its negative; both are added to nothing else that could tell them apart."""
    ends = [value("x", ["n", 2])], [value("y", [2])]
    constants = {"axes": np.array([0]), "one": np.array(1.0, np.float32)}
    summed = [node("Shape", ["x"], ["size"], end=1), node("Cast", ["size"], ["count"], to=FLOAT)]
    summed += [node("Min", ["count", "one"], ["any"]), node("Sub", ["one", "any"], ["none"])]
    summed += [node("ReduceSum", ["x", "axes"], ["s"], keepdims=0)]

    def made(op: str) -> Model:
        """They differ where there is nothing, alone."""
        nodes = [*summed, node("Mul", ["s", "none"], ["e"]), node(op, ["e"], ["f"]), node("Mul", ["f", "none"], ["g"])]
        return model([*nodes, node("Add", ["s", "g"], ["y"])], *ends, constants)

    found = compared(made("Identity"), made(answer))
    assert found.status == status
    assert found.status == "equal" or "nothing in n, n=0" in found.reason


def test_a_helper_that_somebody_else_ends_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Careful.run

    def ended(self: Careful, model: Model | Path, *words: Any) -> Any:
        if model is candidate:
            raise Undecided("it was killed by SIGKILL, perhaps for being out of memory")
        return whole(self, model, *words)

    candidate = pointwise(as_product=True)
    monkeypatch.setattr(Careful, "run", ended)
    found = compared(pointwise(), candidate)
    assert found.status == "equal"
    assert any("nothing in n, n=0: it was killed" in note for note in found.notes)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_where_the_original_has_no_number_nothing_is_wrong(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    number, none = np.ones(2, kind), np.full(2, np.nan, kind)
    rule = rule_of(DType(dtype), Traits(), 1.0)
    assert empty.differs(none, number, rule) == ""
    assert "must be equal" in empty.differs(number, none, rule)
    assert "off by" in empty.differs(number, number * kind.type(2), rule)
    assert "shape" in empty.differs(number, number[:1], rule)
