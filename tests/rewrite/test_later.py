# pyright: basic
"""Rules that are compiled once a node is met that they may begin with find what they find when compiled at once."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

from superopt.rewrite.pattern import first_operator
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.text import parse_rules
from tests.rewrite.taking import REGISTRY, RULES, SHIPPED, opened

pytestmark = pytest.mark.unit

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 6] x, float[4, 6] z) => (float[4, 5] y, float[4, 6] s) <float[6, 5] w, float[6, 5] v> {
  a = MatMul(x, w) b = MatMul(x, v) c = Add(a, b) y = Relu(c) s = Sum(x, z)
}"""
RENAMED = """
rule renamed
  doc     A value under another name.
  given   x: [n]
  a = Relu(x)
  y = a
  =>
  y = Relu(x)
"""


def model() -> bytes:
    proto = parser.parse_model(TEXT)
    for name in ("w", "v"):
        proto.graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, [6, 5], [0.5] * 30))
    del proto.graph.value_info[:]
    return proto.SerializeToString()


def test_the_operator_that_a_rule_is_looked_for_by_is_known_without_compiling_it() -> None:
    patterns = [RULES.patterns[rule.name] for rule in SHIPPED]
    found = [(first_operator(p.rule), (p.anchor.call.domain, p.anchor.call.op)) for p in patterns if p.roots]
    assert len(found) > 3000
    assert [pair for pair in found if pair[0] != pair[1]] == []


def test_a_rule_that_gives_a_value_another_name_is_compiled_at_once() -> None:
    (rule,) = parse_rules(RENAMED)
    assert first_operator(rule) is None


def test_the_same_is_found_in_the_same_order() -> None:
    later = Rules((), REGISTRY)
    later.add_later(SHIPPED)
    at_once = Rules(SHIPPED, REGISTRY)
    assert len(later) == len(at_once) == len(SHIPPED)
    start = opened(model())
    found = [
        [(match.pattern.rule.name, match.nodes) for match, _ in start.matches(start.piece, rules)]
        for rules in (at_once, later)
    ]
    assert found[0]
    assert found[0] == found[1]
    assert list(later.patterns) == list(at_once.patterns)


def test_a_rule_is_known_by_name_before_it_is_compiled() -> None:
    later = Rules((), REGISTRY)
    later.add_later(SHIPPED[:3])
    assert SHIPPED[1].name in later.patterns
    assert "no-such-rule" not in later.patterns
    assert later.patterns.get("no-such-rule") is None
    assert later.patterns[SHIPPED[1].name].rule is SHIPPED[1]
