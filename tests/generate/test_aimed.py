"""Scenes about a few laws: several operators as one, slots for what runs, and where they stop."""

from __future__ import annotations

from pathlib import Path

import pytest

import specs
from superopt.generate.candidate import directions, to_rule
from superopt.generate.enumerate import Enumeration
from superopt.generate.generalize import forms
from superopt.generate.generate import Settings, generate
from superopt.generate.ledger import Ledger
from superopt.generate.local import local
from superopt.generate.recipe import Recipe, load_recipe
from superopt.generate.stage import Stage
from superopt.generate.term import Node, Pair, show
from superopt.generate.worth import cost, is_detour
from superopt.rewrite.rule import Call
from superopt.rewrite.text import parse_rules

REGISTRY = specs.load()
SCALED = """
[[scene]]
name = "scaled"
given = "x: [n, c]  g: [c]  v: [c]  d: [c]"
weights = "g v d"
worlds = ["n=2 c=3", "n=1 c=2", "n=3 c=1", "n=4 c=5"]
ops = ["Add(Mul(#, %), %)", "Mul(#, %)", "Add(#, %)", "Add(#, #)"]
"""


def recipe(tmp_path: Path, text: str, max_ops: int = 2) -> Recipe:
    path = tmp_path / "test.toml"
    path.write_text(text)
    return load_recipe(str(path), REGISTRY, max_ops=max_ops)


def pairs(of: Recipe) -> list[Pair]:
    scene = of.scenes[0]
    return list(Enumeration(Stage(scene, REGISTRY, 0), scene.max_ops, local(1), memory=1 << 30).run())


def told(of: Recipe) -> set[str]:
    shown = [[show(t[0], of.scenes[0].templates) for t in (p.left, p.right)] for p in pairs(of)]
    return {" = ".join(sorted(sides)) for sides in shown}


@pytest.mark.unit
def test_several_operators_may_count_as_one_and_are_written_out_step_by_step(tmp_path: Path) -> None:
    of = recipe(tmp_path, SCALED)
    scene = of.scenes[0]
    law = next(p for p in pairs(of) if "Add(Mul(x, g), v)" in {show(t[0], scene.templates) for t in (p.left, p.right)})
    assert cost(law.left, scene) == cost(law.right, scene) == 2
    for way in directions(law, scene):
        rule = to_rule(way, scene, "r")
        assert not any(isinstance(o, Call) for call in rule.calls for o in call.operands)


@pytest.mark.unit
def test_slots_for_what_runs_take_no_weights(tmp_path: Path) -> None:
    found = told(recipe(tmp_path, SCALED))
    assert any("Add(x, x)" in law for law in found)
    assert not any("Add(g, " in law or "Mul(g, " in law for law in found)


@pytest.mark.unit
def test_operands_differ_where_the_scene_says_so(tmp_path: Path) -> None:
    found = told(recipe(tmp_path, SCALED + "distinct = true\n"))
    assert found
    assert not any("Add(x, x)" in law for law in found)


@pytest.mark.smt
def test_a_scene_ends_after_its_laws(tmp_path: Path) -> None:
    text = """
[[scene]]
name = "few"
laws = 1
given = "x: [n, c]"
worlds = ["n=2 c=3", "n=1 c=2", "n=3 c=1", "n=4 c=5"]
ops = ["Relu(#)", "Abs(#)", "Neg(#)"]
"""
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        found = [
            finding.rule
            for _, findings in generate(recipe(tmp_path, text), REGISTRY, ledger, Settings())
            for finding in findings
        ]
    assert len({frozenset((str(r.left), str(r.right))) for r in found}) == 1


@pytest.mark.smt
def test_attributes_of_one_operator_are_left_open_in_another_that_has_them_too() -> None:
    rule = parse_rules("""rule r
  given x: [n, c, h, w]  k: [o, c, 3, 3]
  y = Relu(Conv(x, k, pads=[1, 1, 1, 1]))
  =>
  y = com.microsoft::FusedConv(x, k, pads=[1, 1, 1, 1], activation="Relu")
""")[0]
    first = forms(rule, REGISTRY)[0]
    assert 'activation="Relu", *a)' in str(first.right[0])


@pytest.mark.smt
def test_a_number_that_an_attribute_says_is_one_variable_wherever_it_stands() -> None:
    rule = parse_rules("""rule r
  given x: [n, c]  g: [c]  d: [c]  m: [c]  v: [c]
  y = BatchNormalization(x, g, d, m, v, epsilon=1e-5)
  =>
  y = Add(Mul(Sub(x, m), Mul(g, Reciprocal(Sqrt(Add(v, 1e-5))))), d)
""")[0]
    first = forms(rule, REGISTRY)[0]
    assert "epsilon=e" in str(first.left[0])
    assert "Add(v, e)" in str(first.right[0])


@pytest.mark.unit
def test_a_normalization_may_fall_apart_and_nothing_is_a_detour_over_itself(tmp_path: Path) -> None:
    text = """
[[scene]]
name = "apart"
given = "x: [n, c]  g: [c]  d: [c]  m: [c]  v: [c]"
weights = "g d m v"
max-inputs = 5
worlds = ["n=2 c=3", "n=1 c=2", "n=3 c=1", "n=4 c=5"]
ops = ["Mul(#, Mul(%, Reciprocal(Sqrt(Add(%, 1e-5)))))", "Add(#, %)", "Reshape(#, shape=[n, c])"]
targets = ["BatchNormalization($, %, %, %, %, epsilon=1e-5)"]
"""
    scene = recipe(tmp_path, text).scenes[0]
    scaled, shifted, viewed, normalized = range(4)
    whole = Node(normalized, ("x", "g", "d", "m", "v"))
    apart = Node(shifted, (Node(scaled, ("x", "g", "v")), "d"))
    assert is_detour((whole,), (apart,), scene)
    assert not is_detour((whole,), (Node(viewed, (whole,)),), scene)
