"""Mending by hand-made boxes, derivations, and the independent test."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from superopt.ops.domains import Reals
from superopt.partial import differ
from superopt.partial.corrected import corrected_mutants, corrections, mutants
from superopt.partial.derivation import DoesNotFollow, follow
from superopt.partial.differ import Disagreement, Wrong, differing, wrong
from superopt.partial.families import canvases, tiles
from superopt.partial.mend import mendings, strips
from superopt.partial.program import GivenUp, Mutant, parse_original, shapes
from superopt.partial.proofs import LONGER, Proofs
from superopt.partial.restrict import Restriction
from superopt.partial.running import run_both
from superopt.partial.writing import Writer
from superopt.rewrite.rule import Call, Rule
from superopt.verify.agree import Agreement, Box
from superopt.verify.prove import Verdict
from tests.partial.programs import REGISTRY

pytestmark = pytest.mark.smt

TALL = parse_original(
    "x: [n, c, 12, 9] k: [o, c, 3, 3] b: [o]", "y = Conv(x, k, b, pads=[1, 1, 1, 1])", {"n": 2, "c": 3, "o": 2}
)


def seam() -> Mutant:
    """Two tiles of the image, cut without overlap."""
    return next(tiles(TALL, shapes(TALL, REGISTRY), REGISTRY))


def operators(rule: Rule) -> list[str]:
    """Of its right side."""
    return [step.value.op for step in rule.right if isinstance(step.value, Call)]


def test_tiles_are_wrong_along_the_cut_and_mended_there() -> None:
    joined, chosen = corrections(seam(), Proofs(REGISTRY))
    for found in (joined, chosen):
        assert found.boxes == {"y": (Box((0, 0, 5, 0), (2, 2, 7, 9)),)}
        assert found.share == pytest.approx(2 / 12)
        assert operators(found.rule).count("Conv") == 2
    assert operators(joined.rule)[-4:] == ["Slice", "Conv", "Slice", "Concat"]
    assert operators(chosen.rule)[-1] == "Where"


def test_what_is_chosen_by_a_mask_has_one_border_and_a_mask_as_small_as_it_may_be() -> None:
    """Two boxes across both axes of the image: a border around each of their rows, one mask for all images."""
    original = parse_original("x: [n, c, 20, 20] k: [o, c, 1, 1]", "y = Conv(x, k)", {"n": 2, "c": 2, "o": 2})
    mutant = Mutant("by hand", original, original.rule(["y = Conv(x, k)"], ""))
    boxes = (Box((0, 0, 1, 1), (2, 2, 3, 4)), Box((0, 0, 6, 2), (2, 2, 8, 5)))
    found = Wrong({"y": boxes}, {"y": (2, 2, 20, 20)}, {"n": 2, "c": 2, "o": 2})
    _, chosen = mendings(mutant, found, REGISTRY)
    text = [str(step) for step in chosen.right]
    assert [line.partition("pads=")[2] for line in text if "Pad(" in line] == [
        "[0, 0, 1, 1, 0, 0, 3, 16])",
        "[0, 0, 0, 2, 0, 0, 12, 15])",
    ]
    assert any("ConstantOfShape(input=[1, 1, 2, 3], value=1)" in line for line in text)
    assert Proofs(REGISTRY).of(chosen).status == "proved"


def test_a_mutant_that_is_wrong_in_too_much_is_dropped() -> None:
    told: list[str] = []
    proofs = Proofs(REGISTRY)
    assert not list(corrections(seam(), proofs, share=0.1, tell=lambda kind, text: told.append(f"{kind} {text}")))
    assert told == ["dropped tiles: wrong in 17% of its results"]


def test_prover_and_test_must_tell_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*_: object, **__: object) -> Agreement:
        return Agreement((), (Box((0, 0, 4, 0), (2, 2, 7, 9)),))

    monkeypatch.setattr(differ, "agree", too_much)
    with pytest.raises(Disagreement, match=r"y\[0, 0, 4, 0\] is right by test"):
        wrong(seam(), REGISTRY)
    told: list[str] = []
    assert not list(corrections(seam(), Proofs(REGISTRY), tell=lambda kind, _: told.append(kind)))
    assert told == ["bug"]


def test_what_the_prover_cannot_tell_is_dropped_and_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def unsure(*_: object, **__: object) -> Agreement:
        return Agreement((), (Box((0, 0, 0, 0), (2, 2, 7, 9)),), (Box((0, 0, 0, 0), (2, 2, 5, 9)),))

    monkeypatch.setattr(differ, "agree", unsure)
    told: list[tuple[str, str]] = []
    assert not list(corrections(seam(), Proofs(REGISTRY), tell=lambda *what: told.append(what)))
    assert told == [("dropped", "tiles: y is right in a part where that could not be proved")]


@pytest.mark.unit
def test_boxes_become_strips_along_their_thinnest_axis() -> None:
    boxes = (Box((0, 0, 11, 0), (1, 2, 12, 5)), Box((0, 0, 0, 3), (1, 2, 6, 4)))
    wide = strips(boxes, (1, 2, 12, 20))
    assert wide == (Box((0, 0, 11, 0), (1, 2, 12, 20)), Box((0, 0, 0, 3), (1, 2, 12, 4)))


def test_what_is_wrong_in_a_part_of_a_batch_is_not_mended_for_all_batches() -> None:
    """Though the part has the right size here: the batch is 2, and was looked at as 2."""
    original = parse_original("x: [n, c, 4] k: [o, c, 1]", "y = Conv(x, k)", {"n": 2, "c": 1, "o": 1})
    mutant = Mutant("by hand", original, original.rule(["y = Conv(x, k)"], ""))
    found = Wrong({"y": (Box((1, 0, 0), (2, 1, 4)),)}, {"y": (2, 1, 4)}, {"n": 2, "c": 1, "o": 1})
    with pytest.raises(GivenUp, match="depends on the size of an axis"):
        list(mendings(mutant, found, REGISTRY))


def part_is_right(given: str, steps: str, name: str, ranges: tuple[tuple[int, int] | None, ...]) -> list[str]:
    """Compare a part of a value with the same part computed from cut operands; the operators that it took."""
    original = parse_original(given, steps, {"n": 2, "c": 2, "o": 3})
    known = shapes(original, REGISTRY)
    writer = Writer(original.names)
    part = Restriction(original, known, REGISTRY, writer).part(name, ranges)
    writer.put(part, "part")
    cut = Writer({*original.names, *writer.taken})
    cut.cut(name, ranges, "part")
    left = [*map(str, original.steps), *cut.lines]
    whole = parse_original(" ".join(map(str, original.given)), "\n".join(left), original.sizes)
    rule = replace(whole.rule(["part = x"], ""), right=original.rule([*writer.lines, "y = x"], "").right[:-1])
    masks = differing(rule, original.sizes, REGISTRY)
    assert masks.keys() == {"part"}
    assert not masks["part"].any()
    return [line.partition(" = ")[2].partition("(")[0] for line in writer.lines]


def test_a_part_of_a_chain_is_computed_from_its_halo() -> None:
    used = part_is_right(
        "x: [n, c, 12, 9] k: [o, c, 3, 3] q: [o, o, 2, 2]",
        "a = Conv(x, k, pads=[1, 1, 1, 1])\nr = Neg(a)\ny = Conv(r, q, strides=[2, 1])",
        "y",
        (None, None, (2, 4), (0, 3)),
    )
    assert used[:-1] == ["Slice", "Conv", "Neg", "Conv"]


def test_parts_of_products_and_of_other_operators() -> None:
    part_is_right("x: [4, 6] k: [6, 5]", "y = MatMul(x, k)", "y", ((1, 3), (2, 5)))
    used = part_is_right("x: [4, 6]", "y = Transpose(x)", "y", ((1, 3), None))
    assert used[:2] == ["Transpose", "Slice"]
    used = part_is_right("x: [4, 6]", "y = Trilu(x)", "y", ((1, 3), None))
    assert used[:2] == ["Trilu", "Slice"], "what looks at its place is computed where it stands"


HEAD = parse_original(
    "x0: [n, c, 6, 8] x1: [n, c, 4, 4] k: [o, c, 3, 3] b: [o] q: [p, o, 3, 3] w: [r, p, 1, 3]",
    """a0 = Conv(x0, k, b, pads=[1, 1, 1, 1])
    f0 = Relu(a0)
    g0 = Conv(f0, q, pads=[1, 1, 1, 1])
    h0 = Sigmoid(g0)
    y0 = Conv(h0, w, pads=[0, 1, 0, 1])
    a1 = Conv(x1, k, b, pads=[1, 1, 1, 1])
    f1 = Relu(a1)
    g1 = Conv(f1, q, pads=[1, 1, 1, 1])
    h1 = Sigmoid(g1)
    y1 = Conv(h1, w, pads=[0, 1, 0, 1])""",
    {"n": 1, "c": 2, "o": 2, "p": 2, "r": 2},
)


def test_a_chain_on_one_canvas_is_proved_layer_by_layer() -> None:
    mutant = next(canvases(HEAD, shapes(HEAD, REGISTRY), REGISTRY))
    assert len(mutant.uses) == 3
    proofs = Proofs(REGISTRY)
    assert proofs.derived(mutant.rule, mutant.uses).status == "proved"
    ops = operators(mutant.rule)
    assert (ops.count("Conv"), ops.count("Where")) == (3, 2)


def test_a_chain_does_not_follow_when_a_layer_is_missing_or_a_mask() -> None:
    mutant = next(canvases(HEAD, shapes(HEAD, REGISTRY), REGISTRY))
    follow(mutant.rule, mutant.uses, REGISTRY)
    with pytest.raises(DoesNotFollow):
        follow(mutant.rule, mutant.uses[:-1], REGISTRY)
    bare = [str(s).replace(", 0)", ", 1)") if "Where(" in str(s) else str(s) for s in mutant.rule.right]
    with pytest.raises(DoesNotFollow):
        follow(HEAD.rule(bare, ""), mutant.uses, REGISTRY)


def test_all_rules_that_a_chain_follows_from_take_no_longer_than_a_few_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Rule] = []

    def slow(rule: Rule, *_: object, seconds: float, **__: object) -> Verdict:
        asked.append(rule)
        return Verdict("proved", "", 1, 0.9 * LONGER * seconds)

    monkeypatch.setattr("superopt.partial.proofs.prove", slow)
    mutant = next(canvases(HEAD, shapes(HEAD, REGISTRY), REGISTRY))
    found = Proofs(REGISTRY, seconds=10).derived(mutant.rule, mutant.uses)
    assert (found.status, found.reason) == ("unknown", "no proof of all that it follows from within 90 s")
    assert len(asked) == 2 < len(mutant.uses)


def test_without_masks_the_chain_is_wrong() -> None:
    mutant = next(canvases(HEAD, shapes(HEAD, REGISTRY), REGISTRY))
    right = [
        replace(step, value=step.value.operands[1])
        if isinstance(step.value, Call) and step.value.op == "Where"
        else step
        for step in mutant.rule.right
    ]
    rng = np.random.default_rng(0)
    plain = HEAD.rule([str(step) for step in right], "")
    left, made = run_both(plain, HEAD.sizes, REGISTRY, Reals(), lambda s, _: rng.standard_normal(s))
    assert not np.allclose(left["y1"], made["y1"])


def test_every_program_gives_each_mutant_once() -> None:
    found = list(corrected_mutants(TALL, REGISTRY, families=(tiles, tiles)))
    assert len({c.rule.name for c in found}) == len(found)
    assert len(found) < 2 * len(list(mutants(TALL, REGISTRY, (tiles,))))
