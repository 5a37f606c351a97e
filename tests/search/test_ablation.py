# pyright: basic
"""A candidate without one of its rules."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from superopt.cost.predict import Predictor
from superopt.ir.onnx import parse
from superopt.normalize import normalize
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.whole import piece_of
from superopt.search.ablation import ablated, essentials, extended
from superopt.search.candidate import Candidate
from superopt.search.ending import Ending
from superopt.search.explore import Limits, explore
from superopt.search.hunt import Hunter
from superopt.search.hunted import Budget
from superopt.search.judge import Look
from superopt.search.regions import Region, graph_of_region
from tests.search.test_hunt import BOOK, lora

pytestmark = pytest.mark.ort

LORA, GELU = "matmul-lora", "gelu-half-last-to-microsoft"


def with_gelu() -> onnx.ModelProto:
    """A low-rank branch, and a GELU spelled out behind it."""
    model = lora(1)
    graph = model.graph
    result = graph.node.pop().output[0]
    numbers = {"root": 2**0.5, "one": 1.0, "half": 0.5}
    graph.initializer.extend(numpy_helper.from_array(np.array(v, np.float32), n) for n, v in numbers.items())
    chain = [("Div", "sum0", "root", "d"), ("Erf", "d", "", "e"), ("Add", "e", "one", "f"), ("Mul", "sum0", "f", "h")]
    for op, first, second, name in [*chain, ("Mul", "h", "half", result)]:
        graph.node.append(helper.make_node(op, [n for n in (first, second) if n], [name]))
    return model


def price(piece: Piece) -> float:
    return Predictor({"n": 16}).region(graph_of_region(piece, ()))


def explored() -> tuple[Piece, Rewriter, list[Candidate]]:
    model = parse(with_gelu().SerializeToString())
    rewriter = Rewriter(BOOK.registry, model.opset, Vocabulary(contrib=True), model.functions)
    start = piece_of(normalize(model).graph, rewriter.constants)
    return (
        start,
        rewriter,
        list(explore(start, BOOK.rules, rewriter, price, Limits(1.05, 300, lambda: False)).candidates),
    )


def test_each_rule_is_left_out_in_turn_and_the_others_stay() -> None:
    start, rewriter, candidates = explored()
    both = next(c for c in candidates if [s.rule.name for s in c.steps] == [LORA, GELU])
    found = ablated(both, start, rewriter, price)
    assert [[s.rule.name for s in c.steps] for c in found] == [[GELU], [LORA]]
    assert all(c.cost == price(c.piece) > both.cost for c in found)


def test_there_is_nothing_to_leave_out_of_one_rule() -> None:
    start, rewriter, candidates = explored()
    alone = next(c for c in candidates if [s.rule.name for s in c.steps] == [LORA])
    assert ablated(alone, start, rewriter, price) == []


def names(candidates: list[Candidate]) -> list[list[str]]:
    return [[s.rule.name for s in c.steps] for c in candidates]


def test_one_more_rule_that_others_have_is_added() -> None:
    start, rewriter, candidates = explored()
    nothing = Candidate(start, price(start), ())
    alone = next(c for c in candidates if names([c]) == [[LORA]])
    both = next(c for c in candidates if names([c]) == [[LORA, GELU]])
    assert sorted(names(extended(nothing, [both], start, rewriter, price))) == sorted([[LORA], [GELU]])
    assert names(extended(alone, [both], start, rewriter, price)) == [[LORA, GELU]]
    assert extended(both, [alone, both], start, rewriter, price) == []


def test_what_matters_most_stands_alone_and_what_hardly_matters_falls_away(monkeypatch: pytest.MonkeyPatch) -> None:
    start, rewriter, candidates = explored()
    both = next(c for c in candidates if names([c]) == [[LORA, GELU]])
    changes = {step.rule.name: abs(price(step.before) - price(step.after)) / price(start) for step in both.steps}
    first, second = sorted(changes, key=lambda name: -changes[name])
    monkeypatch.setattr("superopt.search.ablation.HARDLY", changes[second] / 2)
    assert names(essentials(both, start, rewriter, price)) == [[first]]
    monkeypatch.setattr("superopt.search.ablation.HARDLY", (changes[first] + changes[second]) / 2)
    assert names(essentials(both, start, rewriter, price)) == [[first]]
    monkeypatch.setattr("superopt.search.ablation.HARDLY", 2 * changes[first])
    assert essentials(both, start, rewriter, price) == []


@pytest.mark.parametrize(
    ("times", "left"), [({"both": 1.2}, [LORA]), ({LORA: 0.8, "both": 1.2}, [LORA]), ({GELU: 0.8, "both": 1.2}, [GELU])]
)
def test_of_rules_that_are_blamed_together_one_is_left_out(times: dict[str, float], left: list[str]) -> None:
    """The low-rank branch is worth more by prediction; what is cleared stays."""
    start, rewriter, candidates = explored()
    known = {"both": [LORA, GELU], LORA: [LORA], GELU: [GELU]}
    found = {name: next(c for c in candidates if names([c]) == [rules]) for name, rules in known.items()}
    hunter = hunter_of(start, rewriter)
    look = Look([Region(start, (), {}, ())], 1.0, 1, candidates=[Candidate(start, price(start), ()), found["both"]])
    assert hunter._undoubted(look) == []
    hunter.judge._repute.learn(1.0, {found[name]: taken for name, taken in times.items()})
    assert names(hunter._undoubted(look)) == [left]


def hunter_of(start: Piece, rewriter: Rewriter) -> Hunter:
    class Prices:
        def price(self, piece: Piece, _: Region) -> float:
            return price(piece)

    budget = Budget(search=60, measure=60, candidates=100, alpha=1.05, growth=1 << 20)
    return Hunter(BOOK, rewriter, cast(Any, Prices()), budget, lambda *_: None, Ending())
