# pyright: basic
"""Products that are taken together are in the order in which the model first reads their weights, wherever they are."""

from __future__ import annotations

import pytest

from superopt.rewrite.rewriter import Rules, Step
from superopt.rewrite.text import parse_rules
from tests.rewrite.small import model, numbers
from tests.rewrite.taking import REGISTRY, opened

pytestmark = pytest.mark.unit

(MERGING,) = parse_rules(
    "rule merging\n  given x: [m, k]  u: [k, n]  v: [k, p]\n  y = MatMul(x, u)\n  z = MatMul(x, v)\n"
    "  =>\n  t = MatMul(x, Concat(u, v, axis=1))\n  y, z = Split(t, split=[n, p], axis=1)"
)
RULES = Rules([MERGING], REGISTRY)
TWO_STEPS = model(
    "g (float[2, 4] a, float[2, 4] b) => (float[2, 3] p, float[2, 5] q, float[2, 5] r, float[2, 3] s)"
    " { p = MatMul(a, u) q = MatMul(a, v) r = MatMul(b, v) s = MatMul(b, u) }",
    u=numbers(4, 3),
    v=numbers(4, 5),
)


def merged(results: tuple[str, str], inputs: dict[str, str]) -> bool:
    whole = opened(TWO_STEPS)
    step = Step("merging", results, inputs)
    return not isinstance(whole.rewriter.find(whole.piece, RULES.patterns["merging"], step), str)


def test_steps_that_read_the_same_weights_make_the_same_of_them() -> None:
    whole = opened(TWO_STEPS)
    found = whole.matches(whole.piece, RULES)
    assert len({match.inputs["x"] for match, _ in found}) == len(found) == 2, "each pair once"
    together = [whole.take(whole.piece, match) for match in found]
    read = [{v for node in piece.members for v in node.operands if piece.constants.is_weight(v)} for piece in together]
    alone = {value for weights in read for value in weights if value.node is not None and value.node.op == "Concat"}
    assert len(alone) == 1


def test_a_step_that_is_told_is_found_in_whatever_order_it_was_taken() -> None:
    assert merged(("r", "s"), {"x": "b", "u": "v", "v": "u"})
    assert merged(("s", "r"), {"x": "b", "u": "u", "v": "v"})
    assert not merged(("s", "r"), {"x": "b", "u": "v", "v": "u"})
