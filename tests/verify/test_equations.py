"""Symbols that equations make one are one, and others are not."""

from __future__ import annotations

import pytest

from superopt.ops.condition import Condition
from superopt.ops.index import Index, Poly, Symbol
from superopt.verify.equations import renamings
from superopt.verify.facts import Facts
from tests.verify.sides import verdict

pytestmark = pytest.mark.smt

K, M, G, H = (Poly({(Symbol(name),): 1}) for name in "kmgh")


def conditions(*found: Condition | bool) -> list[Condition]:
    return [c for c in found if isinstance(c, Condition)]


def zero(index: Index) -> Condition | bool:
    return index == 0


def test_a_common_factor_that_is_positive_goes() -> None:
    given = conditions(K >= 1, zero(K * M - K * G))
    assert len(renamings(given)) == 1
    assert Facts(conditions(G >= 1, *given)).entails(zero(H * M - G * ((H * M) // G)))


def test_nothing_is_said_of_what_is_divided_by_nothing() -> None:
    given = conditions(K >= 1, G >= 0, zero(K * M - K * G))
    whole = zero((H * M) // G - H)
    assert not Facts(given).entails(whole)
    assert Facts([*given, *conditions(G >= 1)]).entails(whole)


@pytest.mark.parametrize(
    "given",
    [
        (zero(K * M - K * G),),  # k may be 0
        (K >= 0, zero(K * M - K * G)),
        (K >= 1, zero(K * M + K * G)),
        (K >= 1, zero(2 * K * M - K * G)),
        (K >= 1, zero(K * M - K * G - 1)),
        (K >= 1, zero(K * M - H * G)),
    ],
)
def test_and_no_other(given: tuple[Condition | bool, ...]) -> None:
    assert not renamings(conditions(*given))


def test_none_is_replaced_by_one_that_is_replaced() -> None:
    found = renamings(conditions(zero(M - G), zero(G - H), zero(H - K)))
    names = set(found)
    assert names
    assert not any(names & {a for m in value.terms for a in m} for value in found.values() if isinstance(value, Poly))


GROUPS = """
    given x: [n, m*k, p, q]  y: [m*h, k, s, t]  i: int
    where i >= 1
    out = Relu(Conv(x, y, group=i))
    =>
    out = Relu(Conv(x, y, group={}))"""


@pytest.mark.parametrize(("groups", "status"), [("m", "proved"), ("1", "refuted")])
def test_a_group_is_what_divides_the_channels_by_it(groups: str, status: str) -> None:
    assert verdict(GROUPS.format(groups)).status == status
