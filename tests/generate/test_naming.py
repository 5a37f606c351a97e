"""Names and sentences of rules found by machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from superopt.generate.naming import named
from superopt.rewrite.rule import Rule
from superopt.rewrite.text import format_rule, parse_rules

pytestmark = pytest.mark.unit

MERGE = """
rule one
  given x: [m, k]  u: [k, n]  v: [k, p]
  y1 = MatMul(x, u)
  y2 = MatMul(x, v)
  =>
  y = MatMul(x, Concat(u, v, axis=1))
  y1, y2 = Split(y, split=[n, p], axis=1)
rule two
  given x: [n, ...b]  s: real
  where s >= 0
  y = Relu(Mul(x, s))
  =>
  y = Mul(Relu(x), s)
rule three
  given x: [n, ...b]
  y = com.microsoft::QuickGelu(x)
  =>
  y = com.microsoft::QuickGelu(Identity(x))
"""


def rules() -> list[Rule]:
    return parse_rules(MERGE)


def test_names_begin_with_the_recipe_and_tell_the_operators() -> None:
    names = [r.name for r in named("linear", rules())]
    assert names[0].startswith("linear-matmul-matmul-to-concat-matmul-split-")
    assert names[1].startswith("linear-mul-relu-to-relu-mul-")
    assert len(set(names)) == 3


def test_named_rules_read_again() -> None:
    text = "\n".join(map(format_rule, named("linear", rules())))
    assert [r.name for r in parse_rules(text)] == [r.name for r in named("linear", rules())]


def test_a_name_depends_on_the_text_alone() -> None:
    renamed = [replace(r, name=f"other{k}", origin="elsewhere") for k, r in enumerate(rules())]
    assert [r.name for r in named("linear", renamed)] == [r.name for r in named("linear", rules())]
    assert named("linear", rules()[:1])[0].name == named("linear", rules())[0].name


def test_docs_are_formulas() -> None:
    docs = [r.doc for r in named("linear", rules())]
    assert docs[0] == "x·u, x·v = Split(x·Concat(u, v, axis=1), axis=1)."
    assert docs[1] == "Relu(x·s) = Relu(x)·s, where s ≥ 0."
    assert docs[2] == "QuickGelu(x) = QuickGelu(Identity(x))."


def test_long_formulas_are_told_by_their_operators() -> None:
    steps = "\n".join(f"  y{k} = MatMul(y{k - 1}, w)" for k in range(2, 50))
    rule = parse_rules(f"rule r\n  given x: [k, k]  w: [k, k]\n  y1 = MatMul(x, w)\n{steps}\n  =>\n  y49 = Relu(x)\n")[
        0
    ]
    assert named("linear", [rule])[0].doc == "MatMul 49 times = Relu."
