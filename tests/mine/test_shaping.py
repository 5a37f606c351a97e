"""Shapes of calls are what the operators say, whatever was asked before."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from superopt.ir.lexer import Reader
from superopt.mine.shaping import Known, Shaper
from superopt.mine.targets import Filling, target
from superopt.rewrite.expression import parse_expression
from tests.mine.blocks import REGISTRY

pytestmark = pytest.mark.unit

PRODUCT = target("any", "Transpose(MatMul($, $), perm=[1, 0])")
SPLIT = target("any", "Reshape($, shape=[@, 0 - 1])")


def shaper(known: Known, sizes: dict[str, int], **shapes: tuple[int, ...]) -> Shaper:
    return Shaper(REGISTRY, shapes, dict(sizes), known)


def size(text: str) -> Filling:
    return parse_expression(Reader(text))


def filled(kind: str, *fillings: Filling) -> Mapping[str, Filling]:
    places = {"product": PRODUCT, "split": SPLIT}[kind].places
    return dict(zip((*places["$"], *places["@"]), fillings, strict=True))


def test_a_call_inside_another_gives_what_that_reads() -> None:
    found = shaper({}, {}, x=(2, 3), y=(3, 5))
    assert found.shapes_of(PRODUCT.call, filled("product", "x", "y")) == ((5, 2),)


def test_what_is_not_legal_inside_is_not_legal_as_a_whole() -> None:
    found = shaper({}, {}, x=(2, 3), y=(3, 5))
    for _ in range(2):
        assert found.shapes_of(PRODUCT.call, filled("product", "y", "x")) is None


def test_the_same_name_may_stand_for_another_size_in_the_next_part() -> None:
    known: Known = {}
    for n, shape in ((2, (2, 6)), (3, (3, 4))):
        assert shaper(known, {"n": n}, x=(12,)).shapes_of(SPLIT.call, filled("split", "x", size("n"))) == (shape,)
    assert shaper(known, {"n": 5}, x=(12,)).shapes_of(SPLIT.call, filled("split", "x", size("n"))) is None


def test_inputs_of_one_shape_are_asked_about_once() -> None:
    known: Known = {}
    shaper(known, {}, x=(2, 3), y=(3, 5)).shapes_of(PRODUCT.call, filled("product", "x", "y"))
    before = dict(known)
    assert shaper(known, {}, a=(2, 3), b=(3, 5)).shapes_of(PRODUCT.call, filled("product", "a", "b")) == ((5, 2),)
    assert known == before
