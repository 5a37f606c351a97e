"""Numbers that satisfy conditions, found by moving one symbol after another."""

from __future__ import annotations

import random

from superopt.ops.condition import Condition, negate
from superopt.ops.index import Index, at_least_zero, is_zero, symbol
from superopt.verify.witness import Witness, first, repaired

NAMES = ("a", "b", "c", "d")


def _condition(draw: random.Random) -> Condition | bool:
    names = draw.sample(NAMES, 2)
    left: Index = symbol(names[0]) * draw.randint(1, 3) + draw.randint(-5, 5)
    right: Index = symbol(names[1]) * draw.randint(1, 3)
    if draw.random() < 0.3:
        left = (left + right) // symbol(draw.choice(NAMES))
    return draw.choice([at_least_zero(left - right), is_zero(left - right), negate(at_least_zero(left - right))])


def test_what_is_found_satisfies_everything_it_was_asked_for() -> None:
    draw = random.Random(0)
    found = mended = 0
    for _ in range(300):
        drawn = [_condition(draw) for _ in range(draw.randint(1, 5))]
        conditions = tuple(c for c in drawn if not isinstance(c, bool))
        for witness in first():
            kept = [c for c in conditions if witness.satisfies(c)]
            ordered = (*kept, *(c for c in conditions if c not in kept))
            one, other = repaired(witness, ordered), repaired(witness, ordered, len(kept))
            assert one == other
            if one is not None:
                found += 1
                mended += one is not witness
                fresh = Witness(one.seed, one.largest, one.told)
                assert all(map(fresh.satisfies, conditions))
    assert found > 1000
    assert mended > 200


def test_a_symbol_has_the_number_it_was_given() -> None:
    witness = first()[3]
    before = witness.index(symbol("a") + symbol("b"))
    moved = witness.with_value("a", witness.value("a") + 10)
    assert moved.index(symbol("a") + symbol("b")) == before + 10
    assert witness.index(symbol("a") + symbol("b")) == before
