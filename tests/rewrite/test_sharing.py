"""Rules whose equal parts are one object are the same rules."""

from __future__ import annotations

import pytest

from superopt.rewrite.expression import Binary, Literal, Name
from superopt.rewrite.rule import Given
from superopt.rewrite.ruleset import SHIPPED, load_rules
from superopt.rewrite.sharing import shared

pytestmark = pytest.mark.unit


def test_equal_parts_become_one() -> None:
    size = [Binary("+", Name("n"), Literal("1")) for _ in range(2)]
    first, second = shared((Given("x", "tensor", (size[0],)), Given("y", "tensor", (size[1],))))
    assert (first.name, second.name) == ("x", "y")
    assert size[0] is not size[1]
    assert first.dims is second.dims


def test_what_is_equal_but_of_another_kind_stays_what_it_is() -> None:
    assert [type(item) for item in shared((1, 1.0, True, "1"))] == [int, float, bool, str]


def test_nothing_of_a_rule_is_lost() -> None:
    rules = tuple(load_rules([SHIPPED / "matmul.rules"]))
    again = shared(rules)
    assert again == rules
    assert [(r.source, r.line, r.meaning) for r in again] == [(r.source, r.line, r.meaning) for r in rules]
