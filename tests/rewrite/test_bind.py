"""Names of a rule against the sizes of a model: what does not fit is a conflict, never an accident."""

from __future__ import annotations

import pytest

from superopt.rewrite.bind import Bindings
from superopt.rewrite.conflict import Conflict
from superopt.rewrite.expression import Binary, Literal, Name
from superopt.rewrite.text import parse_given

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("operator", ["*", "+"])
def test_a_name_on_both_sides_of_an_expression_waits_until_it_is_known(operator: str) -> None:
    twice = Binary(operator, Name("n"), Name("n"))
    waiting = Bindings().unified(twice, 4, "4")
    assert "n" not in waiting.names
    assert waiting.equations
    known = waiting.with_name("n", 2).unified(twice, 4, "4")
    assert known.names["n"] == 2
    with pytest.raises(Conflict):
        Bindings().with_name("n", 3).unified(twice, 4, "is not 4")


def test_one_unknown_name_is_solved_for() -> None:
    assert Bindings().unified(Binary("+", Name("n"), Literal("3")), 8, "").names["n"] == 5


def test_a_block_of_less_than_no_axes_fits_nothing() -> None:
    (given,) = parse_given("x: [...b, n]")
    with pytest.raises(Conflict):
        list(Bindings().with_name("|b|", -1).with_shape(given, (2, 3)))


@pytest.mark.parametrize(("dims", "shape", "rank"), [("...b, ...b", (2, 3, 2, 3), 2), ("...b, 5, ...b", (7, 5, 7), 1)])
def test_a_block_in_two_places_has_one_rank(dims: str, shape: tuple[int, ...], rank: int) -> None:
    (given,) = parse_given(f"x: [{dims}]")
    (bound,) = Bindings().with_shape(given, shape)
    assert bound.names["|b|"] == rank
    with pytest.raises(Conflict):
        list(Bindings().with_shape(given, (*shape, 9)))
