"""When a range read off from conditions has a number in it."""

from __future__ import annotations

import pytest

from superopt.ops.condition import Condition
from superopt.ops.index import Symbol, symbol
from superopt.verify.ranges import spans_of

pytestmark = pytest.mark.unit

R, N, P = symbol("r"), symbol("n"), symbol("p")


def conditions(*given: Condition | bool) -> list[Condition]:
    return [c for c in given if isinstance(c, Condition)]


def spans(*given: Condition | bool) -> set[str] | None:
    found = spans_of(Symbol("r"), conditions(*given))
    return None if found is None else set(map(str, found))


def test_between_every_two_bounds_there_must_be_room() -> None:
    assert spans(R >= 0, R < N) == {"n"}
    assert spans(R >= 0, R >= P, R < N) == {"n", str(N - P)}
    assert spans(R >= 0, R + P < N, P - R >= 0) == {str(N - P), str(P + 1)}


def test_what_is_no_bound_says_nothing() -> None:
    assert spans(R >= 0) is None, "no end"
    assert spans(R >= 0, R * 2 < N) is None, "every second number"
    assert spans(R >= 0, R * P < N) is None
    assert spans(R >= 0, R < N, R == P) is None
