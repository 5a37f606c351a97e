"""Lists by formula: look-ups are proved for all sizes, and those that are off by one are not."""

from __future__ import annotations

import pytest

from superopt.ops.index import symbol
from superopt.verify.facts import Facts
from superopt.verify.simplify import _without_factor  # pyright: ignore[reportPrivateUsage]
from tests.verify.sides import verdict

pytestmark = pytest.mark.smt

ROLL = """
    given x: [...a, n, ...b]  s: int
    where s < n
    y = Concat(Slice(x, starts=[s], ends=[n], axes=[|a|]), Slice(x, starts=[0], ends=[s], axes=[|a|]), axis=|a|)
    =>
    y = Gather(x, indices=[{} for p < {}], axis=|a|)"""
WINDOWS = """
    given x: [n, h*i, w*j]
    y = Transpose(Reshape(x, shape=[n, h, i, w, j]), perm=[0, 1, 3, 2, 4])
    =>
    g = Gather(Reshape(x, shape=[n, h*i*w*j]), indices=[{} for p < h*w*i*j], axis=1)
    y = Reshape(g, shape=[n, h, w, i, j])"""


def test_a_roll_is_a_look_up() -> None:
    assert verdict(ROLL.format("(p + s) % n", "n")).status == "proved"


@pytest.mark.parametrize(
    ("entry", "size"), [("(p + s + 1) % n", "n"), ("p + s", "n"), ("(p + 2*s) % n", "n"), ("(p + s) % n", "n + 1")]
)
def test_another_list_is_not(entry: str, size: str) -> None:
    assert verdict(ROLL.format(entry, size)).status != "proved"


def test_windows_are_a_look_up() -> None:
    assert verdict(WINDOWS.format("(p//(w*i*j)*i + p//j%i)*(w*j) + p//(i*j)%w*j + p%j")).status == "proved"
    assert verdict(WINDOWS.format("(p//(w*i*j)*i + p//j%i)*(w*j) + p//(i*j)%w*i + p%j")).status != "proved"


def test_a_quotient_loses_a_common_factor_only_where_the_rest_is_below_it() -> None:
    a, d, f, r = map(symbol, "adfr")
    quotient = (f * a + r) // (f * d)
    (atom,) = [q for q in quotient.atoms if type(q).__name__ == "Quotient"]  # pyright: ignore[reportAttributeAccessIssue]
    sizes = [d >= 1, f >= 1]
    assert str(_without_factor(atom, Facts([*sizes, r >= 0, r < f]))) == str(a // d)  # pyright: ignore[reportArgumentType]
    assert _without_factor(atom, Facts([*sizes, r >= 0, r < f + 1])) is None  # pyright: ignore[reportArgumentType]
    assert _without_factor(atom, Facts([*sizes, r < f])) is None  # pyright: ignore[reportArgumentType]
