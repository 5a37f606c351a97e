"""Hash-consing, congruence, matching, bounds, and that nothing depends on the order of hashes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from superopt.generate.egraph import EGraph
from superopt.generate.pattern import compile_building, compile_pattern
from superopt.generate.term import Term
from tests.generate.scenes import MATRICES, term

pytestmark = pytest.mark.unit


def graph(*terms: str, most_nodes: int = 1000, most_size: int = 100) -> EGraph:
    made = EGraph(MATRICES.templates, most_nodes=most_nodes, most_size=most_size)
    for text in terms:
        made.add(term(text))
    return made


def matches(made: EGraph, *patterns: str) -> list[tuple[int, ...]]:
    pattern = compile_pattern([term(p) for p in patterns])
    assert pattern is not None
    return [m.values for m in made.match(pattern)]


def classes(made: EGraph, *texts: str) -> tuple[int, ...]:
    found = [made.lookup(term(t)) for t in texts]
    assert None not in found
    return tuple(c for c in found if c is not None)


def merge(made: EGraph, a: str, b: str) -> None:
    made.merge(made.add(term(a)), made.add(term(b)))
    made.rebuild()


def test_equal_terms_are_one_node() -> None:
    made = graph("Relu(Add(x, y))", "Mul(Add(x, y), 2)")
    assert len(made) == 5


def test_commutative_operands_have_no_order() -> None:
    made = graph("Add(x, y)", "Add(y, x)", "MatMul(x, y)", "MatMul(y, x)")
    assert made.equal(term("Add(x, y)"), term("Add(y, x)"))
    assert not made.equal(term("MatMul(x, y)"), term("MatMul(y, x)"))


def test_results_of_one_operator_differ() -> None:
    made = graph("Split0(x)", "Split1(x)")
    assert not made.equal(term("Split0(x)"), term("Split1(x)"))


def test_what_is_not_there_is_not_equal() -> None:
    made = graph("x")
    assert made.lookup(term("Relu(x)")) is None
    assert not made.equal(term("Relu(x)"), term("Relu(x)"))
    assert len(made) == 1


def test_congruence_goes_all_the_way_up() -> None:
    made = graph("Relu(Mul(MatMul(x, w), 2))", "Relu(Mul(MatMul(y, w), 2))")
    merge(made, "x", "y")
    assert made.equal(term("Relu(Mul(MatMul(x, w), 2))"), term("Relu(Mul(MatMul(y, w), 2))"))
    assert not made.equal(term("x"), term("w"))


def test_congruence_of_commutative_operands() -> None:
    made = graph("Add(x, u)", "Add(u, y)", "Add(x, w)")
    merge(made, "x", "y")
    assert made.equal(term("Add(x, u)"), term("Add(u, y)"))
    assert not made.equal(term("Add(x, u)"), term("Add(x, w)"))


def test_congruence_through_a_cycle() -> None:
    made = graph("Relu(Relu(Relu(x)))", "Relu(x)")
    merge(made, "Relu(x)", "x")
    assert made.equal(term("Relu(Relu(Relu(x)))"), term("x"))


def test_congruence_against_a_plain_closure() -> None:
    """Merges in every order end in the same classes."""
    texts = ["x", "y", "u", "Relu(x)", "Relu(y)", "Relu(u)", "Add(x, Relu(y))", "Add(Relu(u), y)", "Relu(Relu(u))"]
    found: list[list[bool]] = []
    for merges in ([("x", "y"), ("y", "u")], [("y", "u"), ("x", "u")], [("u", "x"), ("x", "y"), ("y", "u")]):
        made = graph(*texts)
        for a, b in merges:
            merge(made, a, b)
        found.append([made.equal(term(a), term(b)) for a in texts for b in texts])
    assert found[0] == found[1] == found[2]
    assert made.equal(term("Add(x, Relu(y))"), term("Add(Relu(u), y)"))


def test_a_leaf_of_a_pattern_stands_for_any_class() -> None:
    made = graph("Relu(Relu(MatMul(x, w)))", "Relu(y)")
    assert matches(made, "Relu(Relu(a))") == [classes(made, "MatMul(x, w)")]
    assert len(matches(made, "Relu(a)")) == 3


def test_a_leaf_that_is_used_twice_is_one_class() -> None:
    made = graph("MatMul(x, y)", "MatMul(u, u)")
    assert matches(made, "MatMul(a, a)") == [classes(made, "u")]
    merge(made, "x", "y")
    assert len(matches(made, "MatMul(a, a)")) == 2


def test_commutative_patterns_match_in_both_orders() -> None:
    made = graph("Add(x, Relu(y))", "Add(Relu(u), w)")
    found = matches(made, "Add(a, Relu(b))")
    assert sorted(found) == sorted([classes(made, "x", "y"), classes(made, "w", "u")])
    both = matches(graph("Add(x, y)"), "Add(a, b)")
    assert len(both) == 2
    assert len(matches(graph("Add(x, x)"), "Add(a, b)")) == 1


def test_a_pattern_sees_through_equal_classes() -> None:
    made = graph("Relu(Mul(x, 2))", "Add(x, x)")
    assert matches(made, "Relu(Add(a, b))") == []
    merge(made, "Mul(x, 2)", "Add(x, x)")
    assert matches(made, "Relu(Add(a, b))") == [classes(made, "x", "x")]


def test_a_join_has_one_meaning_for_each_leaf() -> None:
    made = graph("MatMul(x, w)", "MatMul(x, v)", "MatMul(y, u)")
    found = matches(made, "MatMul(a, b)", "MatMul(a, c)")
    assert classes(made, "x", "w", "v") in found
    assert classes(made, "x", "v", "w") in found
    assert all(a == classes(made, "x")[0] or b == c for a, b, c in found)


def test_a_bare_leaf_is_no_pattern() -> None:
    assert compile_pattern(["a"]) is None
    assert compile_pattern([term("Relu(a)"), "b"]) is None
    held = compile_pattern([term("Relu(a)"), "a"])
    assert held is not None
    assert len(graph("Relu(x)").match(held)) == 1


def test_only_roots_asked_for_and_young_nodes_match() -> None:
    made = graph("Relu(x)", "Relu(y)")
    pattern = compile_pattern([term("Relu(a)")])
    assert pattern is not None
    assert len(made.match(pattern, made.having(pattern.code)[:1])) == 1
    assert made.match(pattern, younger=0) == []


def build(made: EGraph, text: str, *names: str, age: int = 1) -> tuple[int, ...] | None:
    built: list[Term] = [term(text)]
    return made.build(compile_building(built, names), tuple(made.add(term(n)) for n in names), age)


def test_building_reuses_what_is_there() -> None:
    made = graph("Relu(Add(x, y))")
    before = len(made)
    assert build(made, "Relu(Add(y, x))", "x", "y") == classes(made, "Relu(Add(x, y))")
    assert len(made) == before
    assert build(made, "Mul(Add(x, y), 2)", "x", "y") == classes(made, "Mul(Add(x, y), 2)")
    assert len(made) == before + 1


def test_building_keeps_to_the_bounds_and_leaves_nothing_behind() -> None:
    full = graph("Relu(x)", most_nodes=3)
    assert build(full, "Relu(Relu(Relu(x)))", "x") is None
    assert len(full) == 2
    small = graph("Relu(x)", most_size=2)
    assert build(small, "Relu(Relu(Relu(x)))", "x") is None
    assert len(small) == 2
    assert build(small, "Relu(Relu(x))", "x") is not None


def test_a_node_found_again_in_fewer_steps_is_younger() -> None:
    made = graph("x")
    pattern = compile_pattern([term("Relu(a)")])
    assert pattern is not None
    build(made, "Relu(x)", "x", age=3)
    assert made.match(pattern, younger=3) == []
    build(made, "Mul(Relu(x), 2)", "x", age=2)
    assert [m.age for m in made.match(pattern, younger=3)] == [2]
    made.add(term("Relu(x)"))
    assert [m.age for m in made.match(pattern, younger=3)] == [0]


SCRIPT = """
from tests.generate.test_egraph import graph, merge, matches
made = graph("Add(x, Relu(y))", "Add(Relu(u), w)", "MatMul(Add(x, y), w)", "MatMul(x, w)", "MatMul(y, w)", "Add(v, u)")
merge(made, "x", "u")
merge(made, "y", "v")
print(matches(made, "Add(a, b)"), matches(made, "MatMul(a, b)", "MatMul(c, b)"))
"""


def test_results_do_not_depend_on_hash_seeds() -> None:
    found: list[str] = []
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", SCRIPT]
        found.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert found[0] == found[1] == found[2]
