"""The tree of errors is the one drawn in its docstring."""

from __future__ import annotations

import inspect
import re

import pytest

from superopt import errors
from superopt.errors import BadInput, BadText, SuperoptError

pytestmark = pytest.mark.unit

DRAWN = re.findall(r"[├└]── (\w+)(?: +exit (\d))?", errors.__doc__ or "")
KINDS = {n: k for n, k in vars(errors).items() if inspect.isclass(k) and issubclass(k, SuperoptError)}


def test_every_error_is_drawn_and_every_drawn_error_exists() -> None:
    assert {"SuperoptError", *(name for name, _ in DRAWN)} == set(KINDS)


@pytest.mark.parametrize(("name", "code"), [(n, c) for n, c in DRAWN if c])
def test_exit_codes_are_the_drawn_ones(name: str, code: str) -> None:
    assert KINDS[name].exit_code == int(code)


def test_everything_a_caller_must_change_exits_with_2() -> None:
    assert {k.exit_code for k in KINDS.values() if issubclass(k, BadInput)} == {2}


def test_bad_text_points_at_its_place() -> None:
    error = BadText("expected ')', found 'x'", "a.rules", 3, 5, "f = (x")
    assert str(error) == "a.rules:3:5: expected ')', found 'x'\n  f = (x\n      ^"
