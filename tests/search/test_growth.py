# pyright: basic
"""What the model's weights grow by: each weight once, whoever reads it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from onnx import parser

from superopt.ir.graph import Value, make_node
from superopt.ir.onnx import parse
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.whole import piece_of, weights_read
from superopt.search.candidate import Candidate
from superopt.search.ending import Ending
from superopt.search.forecast import Forecast
from superopt.search.growth import Growth, bytes_of
from superopt.search.hunted import Budget, Gain, Hunted
from superopt.search.judge import Judge, Look
from superopt.search.regions import Region, extract, stitch
from superopt.search.trace import Traced
from superopt.search.trimming import trimmed
from tests.search.rewritten import fill
from tests.search.test_hunt import BOOK, hunted, lora

pytestmark = pytest.mark.unit

WEIGHT = 4 * 8 * 8
"""Bytes of each weight here."""


def sums(*weights: str) -> tuple[Piece, list[Region]]:
    """For each pair of weights `x A + x B` of an x of its own, in regions of three nodes."""
    lines, inputs, outputs = [], [], []
    for k, (a, b) in enumerate(weights):
        inputs.append(f"float[{k + 1}, 8] x{k}")
        outputs.append(f"float[{k + 1}, 8] y{k}")
        lines += [f"p{k} = MatMul(x{k}, {a})", f"q{k} = MatMul(x{k}, {b})", f"y{k} = Add(p{k}, q{k})"]
    declared = ", ".join(f"float[8, 8] {name}" for name in sorted(set("".join(weights))))
    text = f'<ir_version: 8, opset_import: ["": 17]> g ({", ".join(inputs)}) => ({", ".join(outputs)}) <{declared}>'
    proto = parser.parse_model(f"{text} {{ {' '.join(lines)} }}")
    fill(proto)
    model = parse(proto.SerializeToString())
    rewriter = Rewriter(BOOK.registry, model.opset, Vocabulary(contrib=True), model.functions)
    piece = piece_of(model.graph, rewriter.constants)
    return piece, [extract(piece, piece.nodes[k : k + 3]) for k in range(0, len(piece.nodes), 3)]


def merged(region: Region, keeps: bool = False, turned: bool = False) -> Piece:
    """`x (A + B)`, with one weight in place of two, or beside them; or `x (B + A)`."""
    first, second, total = region.piece.members
    x, a, b = first.inputs[0], first.inputs[1], second.inputs[1]
    a, b = (b, a) if turned else (a, b)
    weight = Value(make_node("Add", (a, b), (), (a.type,)))  # pyright: ignore[reportOptionalMemberAccess]
    product = Value(make_node("MatMul", (x, weight), (), total.types))
    if keeps:
        product = Value(make_node("Add", (product, Value(total)), (), total.types))
    return replace(region.piece, results=(product,))


def surveyed(piece: Piece, allowed: int = 100 * WEIGHT) -> Growth:
    growth = Growth(allowed)
    growth.survey(piece)
    return growth


def test_two_weights_that_become_one_take_less() -> None:
    piece, (region,) = sums("ab")
    growth = surveyed(piece, allowed=0)
    change = growth.change([region], merged(region))
    assert change.bytes == -WEIGHT
    assert growth.allows(change)
    assert growth.fits([region], merged(region), share=0.1)


def test_weights_of_like_regions_are_counted_for_each_and_shared_ones_once() -> None:
    piece, regions = sums("ab", "cd")
    assert surveyed(piece).change(regions, merged(regions[0], keeps=True)).bytes == 2 * WEIGHT
    piece, regions = sums("ab", "ab")
    assert surveyed(piece).change(regions, merged(regions[0], keeps=True)).bytes == WEIGHT
    assert surveyed(piece).change(regions, merged(regions[0])).bytes == -WEIGHT


def test_what_another_kind_reads_is_gone_in_hope_until_the_next_survey() -> None:
    piece, (one, other) = sums("ab", "ab")
    growth = surveyed(piece, allowed=WEIGHT)
    first = growth.change([one], merged(one))
    assert first.bytes == -WEIGHT
    growth.take(first)
    second = growth.change([other], merged(other))
    assert (second.made, second.dropped, second.bytes) == (frozenset(), frozenset(), 0)
    assert growth.left == 2 * WEIGHT
    growth.survey(stitch(piece, one, merged(one)).piece)
    assert growth.left == 0, "the other one still reads both"


def test_weights_that_an_earlier_kind_made_cost_nothing_more() -> None:
    piece, (one, other) = sums("ab", "ab")
    growth = surveyed(piece, allowed=WEIGHT)
    growth.take(growth.change([one], merged(one, keeps=True)))
    assert growth.change([other], merged(other, keeps=True)).bytes == 0
    assert growth.fits([other], merged(other, keeps=True), share=0.1)
    piece, (one, other) = sums("ab", "cd")
    growth = surveyed(piece, allowed=WEIGHT)
    growth.take(growth.change([one], merged(one, keeps=True)))
    assert not growth.fits([other], merged(other, keeps=True), share=0.1)
    assert not growth.allows(growth.change([other], merged(other, keeps=True)))


class Sure(Judge):
    """Has timed what it is asked about: one second in place of two."""

    def _again(self, look: Look, chosen: Candidate) -> tuple[float | None, float | None, bool]:
        return 2.0, 1.0, False


@pytest.mark.parametrize("first_turned", [False, True])
def test_of_two_orders_the_one_is_taken_whose_weights_are_there(first_turned: bool) -> None:
    piece, (one, other) = sums("ab", "ab")
    scales: Any = SimpleNamespace(price=lambda *_: 1.0)
    budget = Budget(search=1.0, measure=1.0, candidates=9, alpha=1.05, growth=100 * WEIGHT)
    judge = Sure(scales, budget, Hunted(), lambda *_: None, Ending(), Forecast())
    judge.growth.survey(piece)
    judge.growth.take(judge.growth.change([one], merged(one, turned=first_turned)))

    def candidate(turned: bool) -> Candidate:
        after = merged(other, turned=turned)
        step: Any = SimpleNamespace(before=other.piece, after=after, rule=SimpleNamespace(name="merging"))
        return Candidate(after, 1.0, (step,))

    start, plain, turned = Candidate(other.piece, 2.0, ()), candidate(False), candidate(True)
    look = Look([other], 1.0, 1, candidates=[start, plain, turned], times={start: 2.0, plain: 1.0})
    (step,) = judge.decided(look)
    assert step.after is (turned if first_turned else plain).piece


def test_regions_that_share_are_alike_in_the_search_too() -> None:
    piece, regions = sums("ab", "ab", "ab")
    assert surveyed(piece, allowed=WEIGHT).fits(regions, merged(regions[0], keeps=True), share=1.0)
    piece, regions = sums("ab", "cd", "ef")
    assert not surveyed(piece, allowed=2 * WEIGHT).fits(regions, merged(regions[0], keeps=True), share=1.0)
    assert surveyed(piece, allowed=3 * WEIGHT).fits(regions, merged(regions[0], keeps=True), share=1.0)


def test_what_would_be_too_much_in_the_end_is_cut_down_by_what_gained_least() -> None:
    trace = [Traced((f"n{k}",), (), kind=1 + k % 3) for k in range(6)]
    gains = [Gain(kind, 2, (2.0, 1.0), (2.0, 2.0 - kind), ()) for kind in (1, 2)]
    found = Hunted(trace=trace, gains=gains)
    assert trimmed(found, 6, len) == trace
    assert not found.notes
    assert [r.kind for r in trimmed(found, 5, len)] == [1, 2, 1, 2], "of the third nobody knows what it gained"
    assert [r.kind for r in trimmed(found, 3, len)] == [2, 2]
    assert trimmed(found, -1, len) == []
    assert all("--growth" in note for note in found.notes)


def test_the_file_grows_by_what_was_counted() -> None:
    """A weight that only some of its readers still read is counted once more in the end."""
    shop, found, _ = hunted(lora(3))
    graph, made, _ = shop.build(found.trace)
    size = sum(c.tensor.nbytes for c in graph.constants) - sum(c.tensor.nbytes for c in shop.tidied.constants)
    assert made
    before = sum(bytes_of(weights_read(p)) for p in shop.replayed([])[1].values())
    after = sum(bytes_of(weights_read(p)) for p in shop.replayed(found.trace)[1].values())
    assert after - before == size
