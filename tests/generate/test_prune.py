"""What is dropped as known, what is not, and what is kept though it is known."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from superopt.generate.candidate import directions
from superopt.generate.fitting import Shapes
from superopt.generate.hill import Walker
from superopt.generate.prune import Pruner
from superopt.generate.sameness import abstracted, canonical, inside, pattern_key
from superopt.generate.term import Pair, show
from superopt.generate.worth import cost, order, runs
from tests.generate.scenes import MATRICES, REGISTRY, pair, term

pytestmark = pytest.mark.unit

TWICE = "Relu(Relu(x)) = Relu(x)"
ASSOCIATIVE = "Add(Add(x, y), x) = Add(x, Add(y, x))"
JOINED = "MatMul(x, Concat(w, v, axis=1))"
MERGED = f"MatMul(x, w) ; MatMul(x, v) = Split0({JOINED}) ; Split1({JOINED})"
FIRST = f"Split0({JOINED}) = MatMul(x, w)"
SECOND = f"Split1({JOINED}) = MatMul(x, v)"


def pruner(*offered: str, accepted: tuple[str, ...] = (), shapes: bool = True, macros: int = 50) -> Pruner:
    made = Pruner(MATRICES, registry=REGISTRY if shapes else None, most_macros=macros)
    made.offer(map(pair, offered))
    for text in accepted:
        made.accept(pair(text))
    return made


def proposed(made: Pruner, count: int = 100) -> list[Pair]:
    return made.next(count)


def same(text: str) -> Pair:
    return canonical(pair(text), MATRICES)


def all_true(made: Pruner) -> list[Pair]:
    """Everything that is proposed, if all of it can be proved."""
    found: list[Pair] = []
    while batch := made.next(100):
        for each in batch:
            if made.accept(each):
                found.append(each)
    return found


@pytest.mark.parametrize(
    ("law", "about"),
    [
        ("Add(w, w) = Add(w, v)", False),
        ("MatMul(x, Add(w, v)) = MatMul(x, v)", True),
        ("Relu(x) = Relu(Relu(x))", True),
    ],
)
def test_laws_about_weights_alone_are_not_about_what_runs(law: str, about: bool) -> None:
    assert runs(pair(law), MATRICES) == about


@pytest.mark.parametrize(
    ("law", "ways"),
    [
        ("Add(MatMul(x, w), MatMul(x, v)) = MatMul(x, Add(w, v))", 1),  # another product is no detour
        ("Relu(MatMul(x, w)) = MatMul(x, w)", 2),  # one light operator beside the product
        ("Relu(Relu(MatMul(x, w))) = MatMul(x, w)", 1),
        ("Relu(Relu(x)) = Relu(x)", 1),  # without a product there is nothing to be gained on the way
    ],
)
def test_a_law_is_used_uphill_where_it_sets_something_free(law: str, ways: int) -> None:
    assert len(list(directions(pair(law), MATRICES))) == ways


# canonical


@pytest.mark.parametrize(
    "other",
    [
        "Relu(Add(y, x)) = Add(Relu(x), Relu(y))",
        "Relu(Add(x, y)) = Add(Relu(y), Relu(x))",
        "Add(Relu(x), Relu(y)) = Relu(Add(x, y))",
        "Add(Relu(y), Relu(x)) = Relu(Add(x, y))",
    ],
)
def test_renamed_turned_and_commuted_pairs_are_one(other: str) -> None:
    assert same(other) == same("Relu(Add(x, y)) = Add(Relu(x), Relu(y))")


def test_leaves_become_the_first_of_their_shape() -> None:
    assert same("Relu(Relu(y)) = Relu(y)") == same(TWICE) == pair(TWICE)


def test_leaves_of_other_shapes_are_not_renamed() -> None:
    assert same("Relu(Relu(w)) = Relu(w)") == pair("Relu(Relu(w)) = Relu(w)")
    assert same("Relu(Relu(v)) = Relu(v)") == pair("Relu(Relu(v)) = Relu(v)")


def test_order_of_operands_that_matters_is_kept() -> None:
    one, other = "Concat(x, Relu(y), axis=0) = Relu(x)", "Concat(Relu(y), x, axis=0) = Relu(x)"
    assert same(one) != same(other)


def test_results_have_no_order() -> None:
    left, right = (tuple(reversed(side)) for side in (pair(MERGED).left, pair(MERGED).right))
    assert canonical(Pair(left, right), MATRICES) == same(MERGED)


# abstracted, inside


def test_common_terms_become_leaves() -> None:
    found = abstracted(pair("Relu(Relu(Add(x, y))) = Relu(Add(x, y))"))
    assert [show(t, MATRICES.templates) for t in (*found.left, *found.right)] == ["Relu(Relu(?0))", "Relu(?0)"]
    assert pattern_key(found, MATRICES) == pattern_key(pair(TWICE), MATRICES)


def test_a_whole_side_becomes_a_leaf_if_asked() -> None:
    given = pair("Transpose(Transpose(Add(x, y))) = Add(x, y)")
    key = pattern_key(pair("Transpose(Transpose(x)) = x"), MATRICES)
    assert pattern_key(abstracted(given, whole=True), MATRICES) == key
    assert pattern_key(abstracted(given), MATRICES) != key


def test_terms_of_one_side_are_left() -> None:
    assert abstracted(pair(ASSOCIATIVE)) == pair(ASSOCIATIVE)


def test_keys_forget_names_but_not_which_are_equal() -> None:
    assert pattern_key(pair("Relu(Relu(w)) = Relu(w)"), MATRICES) == pattern_key(pair(TWICE), MATRICES)
    assert pattern_key(pair("Add(x, x) = Add(x, y)"), MATRICES) != pattern_key(pair("Add(x, x) = Add(x, x)"), MATRICES)


def test_a_common_context_is_taken_off() -> None:
    assert inside(pair("Mul(Relu(Relu(x)), 2) = Mul(Relu(x), 2)")) == (pair(TWICE),)
    assert inside(pair("MatMul(Relu(Relu(x)), w) = MatMul(Relu(x), w)")) == (pair(TWICE),)
    assert inside(pair("Mul(Relu(x), 2) = Relu(Mul(x, 2))")) == ()


# what is proposed


def test_renamed_duplicates_are_proposed_once() -> None:
    made = pruner(TWICE, "Relu(Relu(y)) = Relu(y)", "Relu(y) = Relu(Relu(y))")
    assert proposed(made) == [pair(TWICE)]
    assert (made.report.offered, made.report.renamed) == (3, 2)


def test_the_same_on_both_sides_is_no_candidate() -> None:
    assert proposed(pruner("Add(x, y) = Add(y, x)")) == []


def test_the_smallest_and_most_general_come_first() -> None:
    small, large = "Relu(Relu(x)) = Relu(x)", "Relu(Add(x, x)) = Add(Relu(x), Relu(x))"
    assert order(pair(small), MATRICES) < order(pair(large), MATRICES)
    general = "Concat(Mul(x, 2), Mul(y, 2), axis=0) = Mul(Concat(x, y, axis=0), 2)"
    special = "Concat(Mul(x, 2), Mul(x, 2), axis=0) = Mul(Concat(x, x, axis=0), 2)"
    assert order(pair(general), MATRICES) < order(pair(special), MATRICES)


def test_instances_wait_and_are_dropped_when_the_law_is_accepted() -> None:
    made = pruner("Relu(Relu(MatMul(x, w))) = Relu(MatMul(x, w))", TWICE, "Relu(Relu(w)) = Relu(w)")
    assert proposed(made) == [pair(TWICE)]
    assert proposed(made) == []
    made.accept(pair(TWICE))
    assert proposed(made) == []
    assert made.report.instances == 2


def test_instances_are_proposed_when_the_law_is_rejected() -> None:
    made = pruner("Relu(Relu(MatMul(x, w))) = Relu(MatMul(x, w))", TWICE)
    [first] = proposed(made)
    made.reject(first)
    assert proposed(made) == [same("Relu(Relu(MatMul(x, w))) = Relu(MatMul(x, w))")]
    assert proposed(made) == []


def test_a_pair_in_a_context_is_dropped() -> None:
    context = "MatMul(Mul(Mul(x, 2), 2), w) = MatMul(Add(Mul(x, 2), Mul(x, 2)), w)"
    inner = "Mul(Mul(x, 2), 2) = Add(Mul(x, 2), Mul(x, 2))"
    made = pruner(context, inner)
    [first] = proposed(made)
    assert first == same(inner)
    made.accept(first)
    assert proposed(made) == []
    assert made.report.context == 1


def test_what_follows_from_two_laws_is_dropped() -> None:
    made = pruner("Relu(Relu(Transpose(x))) = Transpose(Relu(x))", TWICE, "Relu(Transpose(x)) = Transpose(Relu(x))")
    assert all_true(made) == [same(TWICE), same("Relu(Transpose(x)) = Transpose(Relu(x))")]
    assert made.report.derivable == 1


def test_steps_bound_the_derivation() -> None:
    deep = "Transpose(Relu(Relu(Mul(x, 2)))) = Mul(Relu(Transpose(x)), 2)"
    laws = ("Relu(Transpose(x)) = Transpose(Relu(x))", "Relu(Mul(x, 2)) = Mul(Relu(x), 2)", TWICE)
    laws = (*laws, "Mul(Transpose(x), 2) = Transpose(Mul(x, 2))")
    for steps, derived in ((0, False), (3, True)):
        made = Pruner(MATRICES, registry=REGISTRY, steps=steps)
        made.offer([pair(deep)])
        for law in laws:
            made.accept(pair(law))
        assert made.derivable(same(deep)) == derived


def test_nothing_follows_from_what_was_rejected() -> None:
    made = pruner("Relu(Relu(Transpose(x))) = Transpose(Relu(x))", TWICE, "Relu(Transpose(x)) = Transpose(Relu(x))")
    made.reject(pair(TWICE))
    made.accept(pair("Relu(Transpose(x)) = Transpose(Relu(x))"))
    assert not made.derivable(same("Relu(Relu(Transpose(x))) = Transpose(Relu(x))"))


def test_what_became_derivable_since_it_was_proposed_is_no_rule() -> None:
    first, second = "Add(x, x) = Mul(x, 2)", "Transpose(Transpose(x)) = x"
    made = pruner(first, second, "Relu(Transpose(Transpose(x))) = Relu(x)")
    made.next(100)
    assert made.accept(pair(second))
    assert not made.accept(pair("Relu(Transpose(Transpose(x))) = Relu(x)"))
    assert made.kept == [pair(second)]


# shapes


def test_leaves_stand_only_for_shapes_that_fit() -> None:
    """Split at n and p gives back what was joined only if its width is n: [v, w] is p and n wide."""
    law = "Split0(Concat(w, v, axis=1)) = w"
    wrong = "Split0(Concat(v, w, axis=1)) = v"
    for shapes, derived in ((True, False), (False, True)):
        assert pruner(wrong, accepted=(law,), shapes=shapes).derivable(same(wrong)) == derived


def test_sizes_that_no_operator_names_are_free() -> None:
    law, instance = "Relu(Relu(w)) = Relu(w)", "Relu(Relu(Transpose(u))) = Relu(Transpose(u))"
    assert pruner(instance, accepted=(law,)).derivable(same(instance))


def test_one_name_is_one_size() -> None:
    law = pair("MatMul(x, Concat(w, w, axis=1)) = Concat(MatMul(x, w), MatMul(x, w), axis=1)")
    shapes = Shapes(MATRICES, REGISTRY)
    fits = shapes.fit(["x", "w"], (*law.left, *law.right))
    x, w, v, u = (shapes(name, 0, ()) for name in ("x", "w", "v", "u"))
    assert fits((x, w))
    assert fits((x, v))
    assert not fits((x, u))


def test_two_leaves_may_stand_for_one() -> None:
    law, special = "Concat(Relu(x), Relu(y), axis=0) = Relu(Concat(x, y, axis=0))", "Split0(Concat(w, v, axis=1)) = w"
    twice = "Concat(Relu(x), Relu(x), axis=0) = Relu(Concat(x, x, axis=0))"
    assert pruner(twice, accepted=(law,)).derivable(same(twice))
    inner = "MatMul(x, Split0(Concat(w, v, axis=1))) = MatMul(x, w)"
    assert pruner(inner, accepted=(special,)).derivable(same(inner))


# several results


def test_results_are_found_together() -> None:
    relu = f"Relu(MatMul(x, w)) ; Relu(MatMul(x, v)) = Relu(Split0({JOINED})) ; Relu(Split1({JOINED}))"
    assert pruner(relu, accepted=(MERGED,)).derivable(same(relu))


def test_rules_for_one_result_do_not_introduce_what_is_shared() -> None:
    made = pruner(MERGED, FIRST, SECOND, accepted=(FIRST, SECOND))
    assert made.derivable(same(FIRST))
    assert not made.derivable(same(MERGED))
    assert proposed(made) == [same(MERGED)]


def test_nor_inside_one_result() -> None:
    sides = "MatMul(x, w), MatMul(x, v)", f"Split0({JOINED}), Split1({JOINED})"
    added = " = ".join(f"Relu(Concat({side}, axis=1))" for side in sides)
    assert not pruner(added, accepted=(FIRST, SECOND)).derivable(same(added))
    assert pruner(added, accepted=(MERGED,)).derivable(same(added))


def test_results_that_are_rewritten_one_by_one() -> None:
    both = "Relu(Relu(x)) ; Relu(Relu(Transpose(x))) = Relu(x) ; Relu(Transpose(x))"
    assert pruner(both, accepted=(TWICE,)).derivable(same(both))
    assert not pruner(both).derivable(same(both))


# one direction


def test_a_rule_for_one_direction_still_says_that_sides_are_equal() -> None:
    instance = "Relu(Relu(Transpose(x))) = Relu(Transpose(x))"
    made = pruner(instance)
    made.accept(pair(TWICE), both=False)
    assert made.derivable(same(instance))


def test_what_a_rule_for_one_direction_does_not_reach_is_kept_as_a_macro() -> None:
    instance = "Relu(Relu(Transpose(x))) = Relu(Transpose(x))"
    kept: list[list[Pair]] = []
    for law in (TWICE, "Relu(x) = Relu(Relu(x))"):
        made = pruner(instance)
        made.accept(pair(law), both=False)
        kept.append(made.next(100))
    assert kept == [[], [same(instance)]]


# macros


def test_cost_counts_what_runs() -> None:
    assert cost([term("MatMul(x, w)")], MATRICES) == 10
    assert cost([term("MatMul(w, u)")], MATRICES) == 0
    assert cost([term("Relu(MatMul(x, Concat(w, v, axis=1)))")], MATRICES) == 11
    assert cost([term("Add(Relu(x), Relu(x))")], MATRICES) == 2


HILL = "Relu(Concat(x, Relu(y), axis=0)) = Relu(Concat(x, y, axis=0))"
PUSHED = "Relu(Concat(x, y, axis=0)) = Concat(Relu(x), Relu(y), axis=0)"


def test_a_way_over_a_hill_is_kept_as_a_macro() -> None:
    """Relu is pushed into the Concat, where two of them meet, and pulled out: 4 operators between 3 and 2."""
    made = pruner(HILL, TWICE, PUSHED)
    found = all_true(made)
    assert found == [same(TWICE), same(PUSHED), same(HILL)]
    assert [made.is_macro(p) for p in found] == [False, False, True]
    assert (made.report.accepted, made.report.macros) == (3, 1)


def test_a_level_way_is_no_macro() -> None:
    level = "Relu(Relu(Transpose(Transpose(x)))) = Relu(x)"
    made = pruner(level, TWICE, "Transpose(Transpose(x)) = x")
    assert same(level) not in all_true(made)


def test_macros_are_bounded() -> None:
    assert len(all_true(pruner(HILL, TWICE, PUSHED, macros=0))) == 2


def test_a_walk_keeps_below_the_ends() -> None:
    made = pruner(HILL, accepted=(TWICE, PUSHED), shapes=False)
    walker = Walker(MATRICES, made._usable, steps=3, shaper=None)  # pyright: ignore[reportPrivateUsage]
    assert walker.way(pair(HILL)) == "hill"
    assert walker.way(pair("Relu(Relu(Relu(x))) = Relu(x)")) == "level"


SCRIPT = """
from tests.generate.test_prune import *
made = pruner(HILL, TWICE, PUSHED, MERGED, FIRST, SECOND, ASSOCIATIVE, "Relu(Transpose(x)) = Transpose(Relu(x))")
print([[show(t, MATRICES.templates) for t in (*p.left, *p.right)] for p in all_true(made)], made.report)
"""


def test_the_same_is_proposed_whatever_the_hash_seed() -> None:
    found: list[str] = []
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", SCRIPT]
        found.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert found[0] == found[1] == found[2]
    assert "Split" in found[0]


def test_the_order_of_offers_does_not_matter() -> None:
    texts = [HILL, TWICE, PUSHED, MERGED, FIRST, SECOND, ASSOCIATIVE]
    assert all_true(pruner(*texts)) == all_true(pruner(*reversed(texts)))
    assert show(same(TWICE).left[0], MATRICES.templates) == "Relu(Relu(x))"
