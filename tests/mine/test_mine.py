# pyright: basic
"""What is mined is of use: the optimizer's matcher finds it in the very block that it comes from."""

from __future__ import annotations

import pytest

from superopt.generate.answering import MEMORY, Workers
from superopt.generate.ledger import Ledger
from superopt.generate.proving import USELESS, settle
from superopt.generate.reduce import is_found
from superopt.ir.onnx import parse
from superopt.mine.mine import Miner
from superopt.rewrite.rule import calls_of
from superopt.rewrite.text import format_meaning, parse_rules
from tests.mine.blocks import PACKED, REGISTRY, model_bytes

pytestmark = [pytest.mark.smt, pytest.mark.slow]


def test_queries_keys_and_values_cut_from_a_stack_are_mined_as_they_are_found() -> None:
    """With variables for where the slices end, which has to be 1, 2 and 3, the rule is proved but never matches."""
    with Workers(1, (), MEMORY) as pool:
        miner = Miner(REGISTRY, Ledger(), pool, anchors=frozenset({"Softmax"}))
        found = [mined.rule for mined in miner.mine(parse(model_bytes(PACKED)), "a test")]
    packed = [rule for rule in found if {"MatMul", "Slice", "Softmax"} <= {call.op for call in calls_of(rule.left)}]
    assert packed
    assert all(is_found(rule, REGISTRY) for rule in found)
    assert {call.op for rule in packed for call in calls_of(rule.right)} == {"Attention"}


def test_a_form_that_is_of_no_use_makes_way_for_a_narrower_one() -> None:
    (scaled,) = parse_rules("rule scale\n  given x: [m, k]\n  y = Relu(Mul(x, 2))\n  =>\n  y = Mul(Relu(x), 2)\n")
    (widest,) = settle([scaled], workers=1)
    assert widest.rule is not None
    wide = format_meaning(widest.rule)
    (settled,) = settle([scaled], workers=1, useful=lambda form: format_meaning(form) != wide)
    assert settled.rule is not None
    assert format_meaning(settled.rule) != wide
    assert [attempt.reason for attempt in settled.attempts[:1]] == [USELESS]
    (none,) = settle([scaled], workers=1, useful=lambda _: False)
    assert (none.rule, none.status) == (None, "unknown")
