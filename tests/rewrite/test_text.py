"""Rule text: what parses, and how clearly the rest is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import specs
from superopt.errors import BadInput, BadText
from superopt.ops.registry import REGISTRY
from superopt.rewrite.remembered import read_rules
from superopt.rewrite.ruleset import digest, load_rules, proved, rewrite_proofs, rule_files, state
from superopt.rewrite.text import format_rule, parse_rules

pytestmark = pytest.mark.unit

specs.load()

GOOD = """# a comment
rule relu-twice
  doc     Relu is idempotent:
  doc     relu(relu x) = relu x.
  given   x: [...b]
  y = Relu(Relu(x))
  =>
  y = Relu(x)

rule merge
  given   x: [n, c, h, w]  k1: [o1, c, r, s]  k2: [o2, c, r, s]  p: int  e: real
  where   a.group == 1, o1 + 2*p >= 3, finite
  y1 = Conv(x, k1, *a)
  y2 = Conv(x, k2,
            *a)
  =>
  y = Conv(x, Concat(k1, k2, axis=0), *a)
  y1, y2 = Split(y, split=[o1, o2], axis=1)

rule turned
  given   x: [n, m]  s: int
  y = Concat(Slice(x, starts=[s], ends=[n], axes=[0]), Slice(x, starts=[0], ends=[s], axes=[0]), axis=0)
  =>
  y = Gather(x, indices=[(p + s)%n for p < n], axis=0)
"""


def test_rules_are_read() -> None:
    first, second, _ = parse_rules(GOOD)
    assert first.doc == "Relu is idempotent: relu(relu x) = relu x."
    assert second.results == ("y1", "y2")
    assert second.finite
    assert [str(w) for w in second.where] == ["a.group == 1", "o1 + 2*p >= 3"]
    assert second.sizes == ("n", "c", "h", "w", "o1", "r", "s", "o2")


def test_what_is_printed_parses_to_the_same() -> None:
    for rule in parse_rules(GOOD):
        assert parse_rules(format_rule(rule)) == [rule]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("rule Bad_Name\n  given x: [n]\n  y = Relu(x)\n  =>\n  y = x\n", 1, 6, "expected a name"),
        ("rule a\n  given x: [n\n  y = Relu(x)\n  =>\n  y = x\n", 2, 15, "expected ','"),
        ("rule a\n  given x: [n]\n  y = Relu(x\n", 3, 13, "expected ','"),
        ("rule a\n  given x: [n]\n  y = Relu(z)\n  =>\n  y = x\n", 1, 1, "'z' is read before it is defined"),
        ("rule a\n  given x: [n]\n  y = Relu(x)\n  =>\n  z = x\n", 1, 1, "defines none"),
        ("rule a\n  given x: [n]\n  y = Relu(x)\n", 1, 1, "needs a pattern"),
        ("rule a\n  given x: [n]\n  where n\n  y = Relu(x)\n  =>\n  y = x\n", 3, 10, "expected a comparison"),
        ("rule a\n  given x: [n]\n  y = Relu(x) z\n  =>\n  y = x\n", 3, 15, "expected the end of the line"),
        ("rule a\n  given x: [n]\n  y = Relu(axis=1, x)\n  =>\n  y = x\n", 3, 20, "operands come before"),
        ("rule a\n  proof yes\n  given x: [n]\n  y = Relu(x)\n  =>\n  y = x\n", 2, 3, "expected `proof unbounded"),
        ("  y = Relu(x)\n", 1, 1, "before the first rule"),
        ("rules a\n", 1, 1, "expected `rule NAME`"),
        (
            "rule a\n  given x: [n]\n  y = Relu(x)\n  =>\n  y = Add(x, [p for p < n])\n",
            5,
            14,
            "a list of numbers holds",
        ),
        ("rule a\n  given x: [n]\n  y = Relu(x)\n  =>\n  y = Gather(x, indices=[p for p n])\n", 5, 34, "expected '<'"),
        ("rule a\n  given x: [n]\n  y = Relu(x) $\n  =>\n  y = x\n", 3, 15, "no token"),
    ],
)
def test_errors_point_at_their_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(BadText) as caught:
        parse_rules(text, "f.rules")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"f.rules:{line}:{column}: ")
    assert str(caught.value).split("\n")[-1].index("^") == column + 1


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("Gather(x, indices=[n for n < 2])", "'n' is no free name for a place"),
        ("Gather(x, indices=[p/2 for p < n])", "p/2 is no whole number"),
        ("Gather(x, indices=[p + 0.5 for p < n])", "0.5 is no whole number"),
        ("Gather(x, indices=[sqrt(4) for p < n])", "sqrt(4) is no whole number"),
        ("Gather(x, indices=[p*e for p < n])", "e: no size and no whole number"),
        ("Gather(x, indices=[p + z for p < n])", "z: no size and no whole number"),
        ("Gather(x, indices=[p%s for p < n])", "s, by which is divided, is no sum of products of sizes"),
        ("Gather(x, indices=[p//0 for p < n])", "0, by which is divided, is no sum of products of sizes"),
        ("Gather(x, indices=[p for p < n - 1])", "n - 1 is no sum of products of sizes"),
        ("Gather(x, indices=[[p for p < n]])", "stands for a whole list"),
        ("Gather(x, indices=[[q for q < n] for p < n])", "[q for q < n] is no whole number"),
        ("Reshape(x, shape=[p for p < n])", "can be the indices of a Gather alone"),
    ],
)
def test_a_list_by_formula_holds_whole_numbers(step: str, message: str) -> None:
    text = "rule a\n  given x: [n]  s: int  e: real\n  y = {}\n  =>\n  y = {}\n"
    with pytest.raises(BadText) as caught:
        parse_rules(text.format("Relu(x)", step))
    assert message in str(caught.value)
    with pytest.raises(BadText, match=r"stands on the right side alone|stands for a whole list"):
        parse_rules(text.format(step, "x"))


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    with pytest.raises(BadText, match="is taken"):
        parse_rules(GOOD + GOOD)
    for name in ("a.rules", "b.rules"):
        (tmp_path / name).write_text(GOOD)
    with pytest.raises(BadInput, match="is taken by"):
        load_rules(rule_files([tmp_path]))


def test_a_proof_is_about_this_text_and_these_formulas(tmp_path: Path) -> None:
    path = tmp_path / "a.rules"
    path.write_text(GOOD)
    rules = read_rules(path)
    assert {state(r, REGISTRY) for r in rules} == {"unproved"}
    rewrite_proofs(path, [proved(r, REGISTRY, "unbounded", "z3=0.0") for r in rules])
    assert {state(r, REGISTRY) for r in read_rules(path)} == {"proved"}
    kept = [line for line in path.read_text().split("\n") if not line.startswith("  proof")]
    assert kept == GOOD.split("\n")
    path.write_text(path.read_text().replace("y = Relu(Relu(x))", "y = Relu(Abs(x))"))
    assert [state(r, REGISTRY) for r in read_rules(path)] == ["stale", "proved", "proved"]


def test_the_digest_follows_the_operators_used() -> None:
    first, second, _ = parse_rules(GOOD)
    assert digest(first, REGISTRY) != digest(second, REGISTRY)
    (renamed,) = parse_rules(format_rule(first).replace("relu-twice", "other-name"))
    assert digest(renamed, REGISTRY) == digest(first, REGISTRY)


def test_an_unknown_operator_is_named() -> None:
    (rule,) = parse_rules("rule a\n  given x: [n]\n  y = Frobnicate(x)\n  =>\n  y = x\n")
    with pytest.raises(BadInput, match="Frobnicate"):
        digest(rule, REGISTRY)
