# pyright: basic
"""Asking for a pattern's operators first finds all that trying every rule at every node finds."""

from __future__ import annotations

import pytest

from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rule import Rule
from superopt.rewrite.skeleton import Bone, Number, skeleton_of
from superopt.rewrite.text import parse_rules
from tests.rewrite.instances import instances
from tests.rewrite.taking import REGISTRY, RULES, SHIPPED, Rules, opened

pytestmark = pytest.mark.unit

NUMBERS = """
rule r
  doc     Twice the second part and the part itself.
  given   x: [m + n]
  _, b = Split(x, split=[m, n], axis=0)
  c = Mul(b, 2)
  out = Add(c, b)
  =>
  _, u = Split(x, split=[m, n], axis=0)
  out = Mul(u, 3)
"""


@pytest.mark.parametrize("rule", SHIPPED[::41], ids=lambda r: r.name)
def test_nothing_is_missed(rule: Rule) -> None:
    for instance in instances(rule, REGISTRY, 23, every=False):
        start = opened(instance.data, Vocabulary(cuda=True), instance.shapes)
        found = [(m.pattern.rule.name, m.nodes) for m, _ in start.matches(start.piece)]
        assert found == [
            (name, match.nodes)
            for node in start.piece.nodes
            for name, pattern in RULES.patterns.items()
            if pattern.roots
            for match, _ in start.rewriter.matches(pattern, node, start.piece)
        ]


def test_rules_share_skeletons() -> None:
    assert len({skeleton_of(p) for p in RULES.patterns.values() if p.roots}) < 0.8 * len(RULES)


def test_a_skeleton_has_numbers_repeated_inputs_and_which_output_is_read() -> None:
    bone = skeleton_of(Rules(parse_rules(NUMBERS), REGISTRY).patterns["r"])
    product, part = bone.operands
    assert isinstance(product, Bone)
    assert isinstance(part, Bone)
    assert product.operands == (part, Number())
    assert (part.op, part.output) == ("Split", 1)
