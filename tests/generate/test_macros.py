"""Two rules in one: where patterns overlap, which sizes have to be equal for that, and which pairs are worth it."""

from __future__ import annotations

from pathlib import Path

import pytest

import specs
from superopt.errors import BadInput
from superopt.generate.compose import Composed, Composer, Following
from superopt.generate.equations import NoSolution, Solution
from superopt.generate.generate import Settings, generate
from superopt.generate.known import Known
from superopt.generate.ledger import Ledger
from superopt.generate.macros import hills, running
from superopt.generate.recipe import load_recipe
from superopt.generate.respell import respelled
from superopt.generate.trial import survives
from superopt.rewrite.expression import Literal, Name
from superopt.rewrite.rule import Block, Rule, calls_of
from superopt.rewrite.text import format_meaning, parse_rules
from superopt.verify.prove import prove

REGISTRY = specs.load()


def rule(body: str) -> Rule:
    return parse_rules(f"rule test\n  doc     .\n  origin  test\n{body}\n")[0]


NORMALIZED = rule("""
  given   x: [n, c, h, w]  g: [c]  d: [c]  m: [c]  v: [c]  e: real
  y = BatchNormalization(x, g, d, m, v, epsilon=e)
  =>
  s = Mul(g, Reciprocal(Sqrt(Add(v, (e)))))
  t = Mul(x, Reshape(s, shape=[c, 1, 1]))
  y = Add(t, Reshape(Sub(d, Mul(m, s)), shape=[c, 1, 1]))
""")
TAKEN_UP = rule("""
  given   x: [n, c, h, w]  k: [c, 1, 1, 1]  s: [c, 1, 1]  t: [c, 1, 1]
  y = Add(Conv(x, k, group=c), Add(Mul(x, s), t))
  =>
  u = Conv(x, Add(k, Reshape(s, shape=[c, 1, 1, 1])), group=c)
  y = Add(u, t)
""")
BARE = rule("""
  given   x: [m, k]  w: [k, n]  b: [n]
  y = Gemm(x, w, b)
  =>
  y = Add(MatMul(x, w), b)
""")
SHIFTED = rule("""
  given   x: [m, n]  y: [n]  z: [n]
  r = Add(Add(y, x), z)
  =>
  r = Add(x, Add(y, z))
""")


def both(first: Rule, second: Rule) -> list[Composed]:
    return list(Composer(first, REGISTRY).composed(Following(second)))


@pytest.mark.unit
def test_a_normalization_that_a_convolution_takes_up_is_one_proved_rule() -> None:
    (found,) = both(NORMALIZED, TAKEN_UP)
    made = respelled(found.rule)
    assert [call.op for call in calls_of(made.left)] == ["BatchNormalization", "Conv", "Add"]
    assert str(made.given[0]) == "x: [n, m, k, p]"
    assert "x1: [m, 1, 1, 1]" in map(str, made.given)  # as many filters as the normalization has channels
    assert survives(made, REGISTRY)
    assert prove(made, REGISTRY).status == "proved"


@pytest.mark.unit
def test_what_lies_between_costs_more_than_both_ends() -> None:
    (found,) = both(NORMALIZED, TAKEN_UP)
    weights = frozenset(g.name for g in found.rule.given if g.name != "x")
    costs = [running(steps, weights) for steps in (found.rule.left, found.middle, found.rule.right)]
    assert costs == [12, 13, 11]
    (hill,) = hills([NORMALIZED, TAKEN_UP], REGISTRY)
    assert (hill.start, hill.middle, hill.end) == tuple(costs)
    assert format_meaning(hill.rule) == format_meaning(respelled(found.rule))


@pytest.mark.unit
def test_operands_of_commutative_operators_are_laid_over_one_another_both_ways() -> None:
    (found,) = both(BARE, SHIFTED)
    assert format_meaning(respelled(found.rule)) == format_meaning(
        rule("""
  given   x: [n, m]  y: [m, k]  z: [k]  v: [k]
  t1 = Gemm(x, y, z)
  out = Add(t1, v)
  =>
  u1 = MatMul(x, y)
  u2 = Add(z, v)
  out = Add(u1, u2)
""")
    )


@pytest.mark.unit
def test_what_only_the_first_rule_computes_cannot_be_in_the_pattern() -> None:
    second = rule("""
      given   x: [n, c, h, w]  s: [c, 1, 1]  t: [c, 1, 1]
      y = Mul(Add(Mul(x, s), t), s)
      =>
      y = Add(Mul(x, Mul(s, s)), Mul(t, s))
    """)
    assert both(NORMALIZED, second) == []


@pytest.mark.unit
def test_a_value_in_between_that_is_a_result_is_not_there_before() -> None:
    second = rule("""
      given   x: [n, c, h, w]  s: [c, 1, 1]  t: [c, 1, 1]
      y = Mul(x, s)
      z = Add(y, t)
      =>
      y = Mul(s, x)
      z = Add(t, y)
    """)
    assert both(NORMALIZED, second) == []


@pytest.mark.unit
def test_rules_with_other_attributes_do_not_meet() -> None:
    first = rule("  given   x: [n, m]\n  y = Flatten(x)\n  =>\n  y = Transpose(Transpose(x, perm=[1, 0]), perm=[1, 0])")
    second = "  given   x: [n, m]\n  y = Relu(Transpose(x, perm=[{}]))\n  =>\n  y = Transpose(Relu(x), perm=[{}])"
    assert len(both(first, rule(second.format("1, 0", "1, 0")))) == 1
    assert both(first, rule(second.format("0, 1", "0, 1"))) == []
    unsaid = "  given   x: [n, m]\n  y = Relu(Transpose(x))\n  =>\n  y = Transpose(Relu(x))"
    assert both(first, rule(unsaid)) == []


@pytest.mark.unit
def test_sizes_are_solved_for() -> None:
    solution = Solution()
    solution.equate_shapes((Name("a"), Block("b"), Name("c")), (Name("n"), Literal("1"), Name("m"), Literal("3")))
    assert solution.dims((Block("b"), Name("c"), Name("a"))) == (Literal("1"), Name("m"), Literal("3"), Name("n"))
    solution.equate(Name("m"), Name("a"))
    assert solution.dims((Block("b"),)) in ((Literal("1"), Name("n")), (Literal("1"), Name("m")))
    for a, b in ((Literal("1"), Literal("2")), (Name("bundle.group"), Literal("2"))):
        with pytest.raises(NoSolution):
            solution.equate(a, b)
    with pytest.raises(NoSolution):
        Solution().equate_shapes((Name("a"),), (Name("a"), Name("b")))


@pytest.mark.unit
def test_an_entry_says_how_many(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('doc = "."\n[[macros]]\nname = "two"\nmost = 0\n')
    with pytest.raises(BadInput, match="two: `most` must be a number of at least 1"):
        load_recipe(str(path), REGISTRY)


@pytest.mark.unit
def test_known_rules_are_composed_and_proved(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('doc = "."\n[[macros]]\nname = "two"\nmost = 5\n')
    known = Known(REGISTRY, [NORMALIZED, TAKEN_UP, SHIFTED])
    found = list(generate(load_recipe(str(path), REGISTRY), REGISTRY, Ledger(), Settings(), known=known))
    ((counts, findings),) = found
    assert counts.proved == len(findings) == 1
    assert findings[0].macro
    assert known.leads(findings[0].rule)
