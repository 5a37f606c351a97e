"""From certain sizes and attributes to the general rule."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import specs
from superopt.generate.generalize import MOST_FORMS, can_be_used, forms
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import load_rules, rule_files
from superopt.rewrite.text import format_meaning, format_rule, parse_rules
from superopt.verify.prove import prove
from tests.generate.particular import coverage, particular

pytestmark = pytest.mark.smt

REGISTRY = specs.load()
WRITTEN = Path(__file__).with_name("handwritten.rules")
SHIPPED = {rule.name: rule for rule in load_rules([*rule_files(), WRITTEN])}


def read(text: str) -> Rule:
    return parse_rules(f"rule r\n{text}")[0]


def given(rule: Rule) -> str:
    return "  ".join(map(str, rule.given))


def test_the_first_form_is_general_and_the_last_is_the_rule_itself() -> None:
    rule = read("""
  given x: [m, k]  u: [k, n]  v: [k, p]
  y1 = MatMul(x, u)
  y2 = MatMul(x, v)
  =>
  y = MatMul(x, Concat(u, v, axis=1))
  y1, y2 = Split(y, split=[n, p], axis=1)
""")
    found = forms(rule, REGISTRY)
    assert given(found[0]) == "x: [...b, m, k]  u: [...c, k, n]  v: [...c, k, p]"
    assert given(found[1]) == "x: [...b, m, k]  u: [k, n]  v: [k, p]"
    assert "axis=|b| + 1" in str(found[1].right[1])
    assert format_meaning(found[-1]) == format_meaning(rule)
    assert len({format_meaning(f) for f in found}) == len(found) <= MOST_FORMS


def test_attributes_that_both_sides_have_alike_become_a_bundle() -> None:
    rule = read("""
  given x: [n, c, h, w]  z: [n, d, h, w]
  y = Concat(MaxPool(x, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    MaxPool(z, kernel_shape=[3, 3], pads=[1, 1, 1, 1]), axis=1)
  =>
  y = MaxPool(Concat(x, z, axis=1), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
""")
    first = forms(rule, REGISTRY)[0]
    assert str(first.right[0]) == "y = MaxPool(Concat(x, z, axis=1), *a)"
    assert given(first) == "x: [n, c, ...h]  z: [n, d, ...h]"


def test_attributes_that_differ_stay_named_under_a_condition() -> None:
    rule = read("""
  given x: [n, c, h, w]  z: [n, c, h, w]  k: [o, c, 3, 3]  u: [o, c, 3, 3]
  y = Concat(Conv(x, k), Conv(z, u), axis=1)
  =>
  y = Conv(Concat(x, z, axis=1), Concat(k, u, axis=0), group=2)
""")
    first = forms(rule, REGISTRY)[0]
    assert "a.group == 1" in map(str, first.where)
    assert str(first.right[0]).endswith("group=2, *a)")


def test_attributes_are_variables_where_a_bundle_would_be_wrong() -> None:
    rule = read("""
  given x: [n, c, h, w]  k: [o, c, r, s]
  y = Conv(Neg(x), k, strides=[2, 2])
  =>
  y = Conv(Pad(Neg(x), pads=[0, 0, 0, 0, 0, 0, 0, 0]), k, strides=[2, 2], pads=[0, 0, 0, 0])
""")
    assert any("strides=[s0, s1]" in str(form.left[0]) for form in forms(rule, REGISTRY))


def test_numbers_become_variables_and_the_right_side_is_told_by_them() -> None:
    rule = read("""
  given x: [m, k]
  y = Mul(Mul(x, 2), 3)
  =>
  y = Mul(x, 6)
""")
    first = forms(rule, REGISTRY)[0]
    assert given(first) == "x: [...b, k]  s: real  t: real"
    assert str(first.right[0]) == "y = Mul(x, (s*t))"


def test_numbers_keep_their_sign_where_it_matters_and_their_value_where_that_does() -> None:
    relu = read("  given x: [m, k]\n  y = Relu(Mul(x, 2))\n  =>\n  y = Mul(Relu(x), 2)")
    assert "s >= 0" in map(str, forms(relu, REGISTRY)[0].where)
    one = read("  given x: [m, k]\n  y = Mul(x, 1)\n  =>\n  y = Identity(x)")
    assert str(forms(one, REGISTRY)[0].left[0]) == "y = Mul(x, 1)"


def test_an_epsilon_is_more_than_nothing_where_that_matters() -> None:
    """Elements that are all the same are 0/0 on one side, and what rounding made of it on the other."""
    centred = read("""
  given x: [m, n]  g: [n]  c: [n]
  y = LayerNormalization(Sub(x, ReduceMean(x, axes=[1], keepdims=1)), g, c, axis=1, epsilon=0.25)
  =>
  y = LayerNormalization(x, g, c, axis=1, epsilon=0.25)
""")
    first = forms(centred, REGISTRY)[0]
    assert "epsilon: real" in given(first)
    assert [str(w) for w in first.where] == ["epsilon > 0"]


def test_what_broadcasts_gets_sizes_of_its_own() -> None:
    rule = read("  given x: [m, k]  y: [m, k]\n  z = Add(x, y)\n  =>\n  z = Add(y, x)")
    first = forms(rule, REGISTRY)[0]
    assert given(first) == "x: [...b, k2]  y: [...b, k]"


def test_axes_that_attributes_speak_of_stay_and_others_become_blocks() -> None:
    rule = read("  given x: [m, n]\n  y = Div(Exp(x), ReduceSum(Exp(x), axes=[1]))\n  =>\n  y = Softmax(x, axis=1)")
    first = forms(rule, REGISTRY)[0]
    assert given(first) == "x: [...b, n, ...c]"
    assert str(first.right[0]) == "y = Softmax(x, axis=|b|)"


def test_a_left_out_axis_is_said_once_a_block_is_in_the_way() -> None:
    rule = read("  given x: [m, n]\n  y = Log(Softmax(x))\n  =>\n  y = LogSoftmax(x)")
    first = forms(rule, REGISTRY)[0]
    assert given(first) == "x: [...b, n, ...c]"
    assert str(first.left[0]) == "y = Log(Softmax(x, axis=|b|))"


def test_rules_that_lose_a_nan_are_marked() -> None:
    rule = read("  given x: [m, n]  z: [m, n]\n  y = Add(Mul(x, 0), z)\n  =>\n  y = Identity(z)")
    assert all(form.finite for form in forms(rule, REGISTRY))


def test_a_number_whose_nan_is_lost_is_known_to_be_finite_instead() -> None:
    rule = read("  given x: [m, n]  s: []\n  y = Softmax(Add(x, s), axis=1)\n  =>\n  y = Softmax(x, axis=1)")
    assert not any(form.finite for form in forms(rule, REGISTRY))
    assert given(forms(rule, REGISTRY)[-1]) == "x: [m, n]  s: finite[]"


def test_forms_are_rules_that_read_again() -> None:
    for name in ("matmul-move-column-scale", "slice-of-all", "max-of-relu"):
        for form in forms(particular(SHIPPED[name], {"b": 1}), REGISTRY):
            assert format_meaning(parse_rules(format_rule(form))[0]) == format_meaning(form)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("matmul-associate-right", {}),
        ("matmul-move-column-scale", {}),
        ("add-itself", {"b": 1}),
        ("split-of-concat", {"c": 1}),
        ("sum-through-add", {"b": 1}),
        ("global-average-pool-of-concat", {}),
        ("transpose-through-concat", {}),
    ],
)
def test_hand_written_rules_are_found_again(name: str, ranks: dict[str, int]) -> None:
    rule = SHIPPED[name]
    proved = next(f for f in forms(particular(rule, ranks), REGISTRY) if prove(f, REGISTRY).status == "proved")
    assert coverage(proved, rule, REGISTRY) == 1.0


def test_a_rule_is_used_where_the_left_side_tells_all_that_the_right_needs() -> None:
    both = read("  given x: [m, k]\n  y = Relu(Relu(x))\n  =>\n  y = Relu(x)")
    assert can_be_used(both)
    assert can_be_used(turned(both))
    lost = read("  given x: [m, k]  z: [m, k]\n  y = Sub(Add(x, z), z)\n  =>\n  y = Relu(x)")
    nothing = read("  given x: [m, k]\n  y = Neg(Neg(x))\n  =>\n  y = Identity(x)")
    size = read("  given x: [m]  z: [n]\n  y = Slice(Concat(x, z, axis=0), starts=[0], ends=[m])\n  =>\n  y = Relu(x)")
    for one_way in (lost, nothing, size):
        assert can_be_used(one_way)
        assert not can_be_used(turned(one_way))


def test_several_results_can_be_used_both_ways() -> None:
    merge = read("""
  given x: [m, k]  u: [k, n]  v: [k, p]
  y1 = MatMul(x, u)
  y2 = MatMul(x, v)
  =>
  y = MatMul(x, Concat(u, v, axis=1))
  y1, y2 = Split(y, split=[n, p], axis=1)
""")
    assert can_be_used(merge)
    assert can_be_used(turned(merge))
    assert parse_rules(format_rule(turned(merge)))[0].results == ("y1", "y2")


def turned(rule: Rule) -> Rule:
    return replace(rule, left=rule.right, right=rule.left)
