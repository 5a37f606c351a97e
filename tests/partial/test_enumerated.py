"""Moves around linear operators: what they do, which of them fit, and what comes of them."""

from __future__ import annotations

from itertools import permutations, product

import pytest

from superopt.partial.bilinear import bilinear
from superopt.partial.corrected import corrections, mutants
from superopt.partial.differ import differing, wrong
from superopt.partial.families import FAMILIES, enumerated
from superopt.partial.local import element_functions
from superopt.partial.moves import Fold, Grow, Move, Swap, cut, through
from superopt.partial.plans import plans, written
from superopt.partial.program import Mutant, Original, parse_original, shapes
from superopt.partial.proofs import Proofs
from superopt.partial.terms import Terms
from superopt.partial.writing import Writer
from tests.partial.programs import REGISTRY

DIMS = (4, 6, 8)
COPY = parse_original(f"x: {list(DIMS)}", "y = Identity(x)", {})

PATCHES = parse_original(
    "x: [n, c, 28, 28] k: [o, c, 4, 4]", "y = Conv(x, k, strides=[4, 4])", {"n": 1, "c": 4, "o": 8}
)
PLAIN = parse_original(
    "x: [n, c, 28, 28] k: [o, c, 3, 3] b: [o]", "y = Conv(x, k, b, pads=[1, 1, 1, 1])", {"n": 2, "c": 4, "o": 4}
)
SPREAD = parse_original("x: [n, c, 10] k: [c, o, 2]", "y = ConvTranspose(x, k, strides=[2])", {"n": 1, "c": 2, "o": 2})


def moved_and_back(*moves: Move) -> bool:
    """Whether a tensor is itself again after the moves and a cut to its own shape."""
    writer = Writer(COPY.names)
    x, dims = "x", DIMS
    for move in moves:
        x, dims = move.write(writer, x, dims), move.dims(dims)
        assert dims is not None
    kept = cut(writer, x, dims, DIMS)
    assert kept is not None
    writer.put(kept, "y")
    return not differing(COPY.rule(writer.lines, ""), {}, REGISTRY)["y"].any()


@pytest.mark.unit
def test_what_is_folded_is_unfolded_by_its_inverse_and_by_nothing_else() -> None:
    for source, target in permutations(range(3), 2):
        for coarse, first in product((True, False), repeat=2):
            fold = Fold(source, target, 2, coarse, first)
            assert fold.inverse is not None
            assert moved_and_back(fold, fold.inverse)
            assert not moved_and_back(fold, Fold(target, source, 2, first, not coarse))


@pytest.mark.unit
def test_what_was_exchanged_and_filled_up_comes_back() -> None:
    assert moved_and_back(Swap(0, 2), Swap(0, 2))
    assert moved_and_back(Grow(1, 4))
    assert through([Grow(1, 4)], DIMS) == (4, 8, 8)
    assert Grow(0, 7).dims(DIMS) is None, "more zeros than numbers"
    assert Fold(1, 0, 4, True, True).dims(DIMS) is None


@pytest.mark.unit
def test_operators_are_linear_as_their_formulas_say() -> None:
    def is_one(given: str, step: str) -> bool:
        return bilinear(parse_original(given, step, {"n": 2, "m": 3}), REGISTRY) is not None

    assert is_one("x: [n, m] k: [m, n]", "y = MatMul(x, k)")
    assert is_one("x: [n, m] k: [m, n] b: [n]", "y = Gemm(x, k, b)")
    assert is_one("x: [n, m, 4] k: [m, n, 2]", "y = ConvTranspose(x, k)")
    assert not is_one("x: [n, m] k: [n, m]", "y = Add(x, k)")
    assert not is_one("x: [n, m] k: [n, m]", "y = Max(x, k)")
    assert not is_one("x: [n, n]", "y = MatMul(x, x)")


@pytest.mark.unit
def test_functions_of_elements_are_those_whose_formulas_are() -> None:
    found = element_functions(REGISTRY)
    known = {
        "Relu",
        "LeakyRelu",
        "Sigmoid",
        "Tanh",
        "HardSwish",
        "HardSigmoid",
        "Elu",
        "Selu",
        "Gelu",
        "Mish",
        "Softplus",
    }
    assert known <= found
    assert found.isdisjoint({"Softmax", "Transpose", "Trilu", "EyeLike", "Squeeze", "Flatten", "GlobalMaxPool", "Add"})
    assert found.isdisjoint({"Log", "Sqrt", "Reciprocal"}), "these have no value in some gaps"


@pytest.mark.unit
def test_all_plans_give_the_shape_that_is_wanted() -> None:
    for original in (SPREAD, parse_original("x: [2, 2, 8] k: [2, 2, 3]", "y = Conv(x, k, pads=[1, 1])", {})):
        small = original.pinned(original.sizes)
        subject = bilinear(small, REGISTRY)
        assert subject is not None
        found = plans(subject)
        assert len(found) > 20
        for plan in found:
            lines = written(subject, plan)
            assert lines is not None
            made = Original(small.given, small.rule(lines, "").right, {})
            assert shapes(made, REGISTRY)["y"] == shapes(small, REGISTRY)["y"]


def named(mutant: Mutant) -> str:
    return mutant.rule.doc.partition(": ")[2]


def enumerated_mutants(original: Original) -> list[Mutant]:
    return list(enumerated(original, shapes(original, REGISTRY), REGISTRY))


@pytest.mark.smt
@pytest.mark.parametrize(
    ("original", "doc"),
    [
        (PATCHES, "4 strides of axis 2 into axis 1, filters 4 runs of axis 2 into axis 1, strides [1, 4]."),
        (PLAIN, "2 runs of axis 0 into axis 1, filters for each of 2 groups, 2 runs of axis 1 into axis 0."),
        (PLAIN, "2 runs of axis 0 into axis 2, dilations [2, 1], pads [2, 1, 2, 1], 2 strides of axis 2 into axis 0."),
    ],
)
def test_programs_that_nobody_thought_of_are_right_everywhere(original: Original, doc: str) -> None:
    """Patches as channels; a batch as groups; a batch interleaved, under a dilation."""
    (mutant,) = [m for m in enumerated_mutants(original) if named(m) == doc]
    (found,) = corrections(mutant, Proofs(REGISTRY))
    assert not found.share


@pytest.mark.smt
def test_and_some_are_wrong_in_a_part_that_is_mended() -> None:
    """Lower halves of images beside upper ones: wrong where these meet, and where they met."""
    (mutant,) = [m for m in enumerated_mutants(PLAIN) if named(m).startswith("2 runs of axis 2 into axis 3")]
    found = wrong(mutant, REGISTRY)
    assert 0.05 < found.share < 0.2
    assert len(list(corrections(mutant, Proofs(REGISTRY)))) == 2


@pytest.mark.unit
def test_nothing_is_enumerated_that_another_family_makes() -> None:
    for original in (PLAIN, PATCHES):
        terms = Terms()
        inputs = {g.name: terms.term(("input", g.name)) for g in original.given}
        seen: dict[int, str] = {}
        for mutant in mutants(original, REGISTRY, FAMILIES):
            term = terms.run(mutant.rule.right, inputs, mutant.original.sizes)["y"]
            assert seen.setdefault(term, mutant.family) == mutant.family
        assert "enumerated" in seen.values()
        assert len(set(seen.values())) > 2


@pytest.mark.unit
def test_of_other_programs_nothing_is_enumerated() -> None:
    for step in ("y = Max(x, k)", "y = Add(MatMul(x, k), b)"):
        original = parse_original("x: [n, n] k: [n, n] b: [n]", step, {"n": 4})
        assert not enumerated_mutants(original)


@pytest.mark.unit
@pytest.mark.parametrize("pads", [600, 10**6])
def test_what_is_large_with_its_padding_is_not_looked_at(pads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("nothing is run here")

    monkeypatch.setitem(enumerated.__globals__, "run", forbidden)
    call = f"y = Conv(x, k, pads={[pads] * 4})"
    original = parse_original("x: [n, c, 28, 28] k: [o, c, 3, 3]", call, {"n": 2, "c": 4, "o": 4})
    assert not enumerated_mutants(original)


@pytest.mark.unit
def test_all_candidates_together_read_so_many_numbers_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two programs that differ in the side of their padding alone; what is found of one is remembered."""
    found: list[int] = []
    for pads, most in (([1, 2], 1 << 27), ([2, 1], 1 << 14)):
        monkeypatch.setitem(enumerated.__globals__, "MOST_READ", most)
        call = f"y = Conv(x, k, pads={pads})"
        original = parse_original("x: [n, c, 12] k: [o, c, 4]", call, {"n": 2, "c": 2, "o": 2})
        found.append(len(enumerated_mutants(original)))
    assert found[0] > found[1]
