# pyright: basic
"""The shortest way down, and ways over hills that are gone again elsewhere."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.ruleset import SHIPPED, load_rules
from superopt.search import explore as exploring
from superopt.search.candidate import Candidate
from superopt.search.descend import Way
from superopt.search.explore import Limits, explore
from superopt.search.hills import climbed, hills_of
from tests.search.test_condense import opened, plain
from tests.search.test_explore import FOUR, SIDE_PATH, launches, with_side_paths
from tests.search.test_hunt import BOOK

pytestmark = pytest.mark.ort

TURNED = "kernels-transpose-mul-to-reshape-mul-transpose-8f51"
APART = "row-scale-after-shift"
JOINED = "reduce-matmul-mul-to-mul-matmul-3777"
CHANNELS = 6


def scaled(blocks: int) -> onnx.ModelProto:
    """Affine maps of pixels, turned to channels first, then scaled by channel and turned back."""
    rng = np.random.default_rng(0)
    nodes, weights, x = [], [], "x"
    for k in range(blocks):
        for name, shape in (("w", (CHANNELS, CHANNELS)), ("b", (CHANNELS,)), ("g", (CHANNELS, 1, 1))):
            weights.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), f"{name}{k}"))
        nodes += [
            helper.make_node("MatMul", [x, f"w{k}"], [f"p{k}"]),
            helper.make_node("Add", [f"p{k}", f"b{k}"], [f"q{k}"]),
            helper.make_node("Transpose", [f"q{k}"], [f"r{k}"], perm=[0, 3, 1, 2]),
            helper.make_node("Mul", [f"r{k}", f"g{k}"], [f"s{k}"]),
            helper.make_node("Relu", [f"s{k}"], [f"t{k}"]),
            helper.make_node("Transpose", [f"t{k}"], [f"y{k}"], perm=[0, 2, 3, 1]),
        ]
        x = f"y{k}"
    ports = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 3, 4, CHANNELS]) for n in ("x", x)]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def rules_named(*names: str) -> Rules:
    files = [
        SHIPPED / "generated" / "kernels.rules",
        SHIPPED / "generated" / "reduce.rules",
        SHIPPED / "pointwise.rules",
    ]
    return Rules([rule for rule in load_rules(files) if rule.name in names], BOOK.registry)


HILL = rules_named(TURNED, APART, JOINED)
SIDE_PATHS = Rules(
    [rule for rule in load_rules([SHIPPED / "generated" / "gates.rules"]) if rule.name in (FOUR, SIDE_PATH)],
    BOOK.registry,
)


def scales(piece: Piece) -> float:
    """Nothing is gained before the last scale at run time is gone, and a scale in front of a Transpose costs more."""
    total = 0.0
    for node in piece.members:
        after = any(v is not None and v.node is not None and v.node.op == "Transpose" for v in node.inputs)
        total += (1.0 if after else 1.2) if node.op == "Mul" else 0.1
    return total


def begun(proto: onnx.ModelProto, price):
    start, rewriter = opened(proto)
    return Candidate(start, price(start), ()), rewriter


def gone_over(blocks: int, limit: int):
    start, rewriter = opened(scaled(blocks))
    return explore(start, HILL, rewriter, scales, Limits(1.5, limit, lambda: False)), rewriter


def test_all_that_pays_is_done_and_the_steps_lead_there() -> None:
    first, rewriter = begun(with_side_paths(), launches)
    found = Way(first, SIDE_PATHS, rewriter, launches, lambda: False).to_the_end()
    assert found is not None
    assert found.cost == launches(found.piece) < first.cost
    assert found.steps[0].before is first.piece
    assert found.steps[-1].after is found.piece
    assert all(a.after is b.before for a, b in zip(found.steps, found.steps[1:], strict=False))
    assert Way(found, SIDE_PATHS, rewriter, launches, lambda: False).to_the_end() is None, "nothing pays at the end"


def test_it_goes_on_from_where_others_have_come() -> None:
    first, rewriter = begun(with_side_paths(), launches)
    once = min(
        explore(first.piece, SIDE_PATHS, rewriter, launches, Limits(1.05, 2, lambda: False)).candidates[1:],
        key=lambda c: len(c.steps),
    )
    found = Way(once, SIDE_PATHS, rewriter, launches, lambda: False).to_the_end()
    assert found is not None
    assert found.steps[: len(once.steps)] == once.steps


def test_where_nothing_pays_or_no_time_is_left_there_is_no_way() -> None:
    first, rewriter = begun(plain(), launches)
    assert Way(first, BOOK.rules, rewriter, launches, lambda: False).to_the_end() is None
    first, rewriter = begun(with_side_paths(), launches)
    assert Way(first, SIDE_PATHS, rewriter, launches, lambda: True).to_the_end() is None


def test_a_search_that_may_look_at_little_finds_what_lies_downhill(monkeypatch: pytest.MonkeyPatch) -> None:
    start, rewriter = opened(with_side_paths())
    rules = Rules(
        [r for r in load_rules([SHIPPED / "generated" / "gates.rules"]) if r.name == SIDE_PATH], BOOK.registry
    )

    def found() -> float:
        return explore(start, rules, rewriter, launches, Limits(1.05, 2, lambda: False)).best.cost

    low = found()
    monkeypatch.setattr(exploring, "_ends", lambda *_: ())
    assert low < found()


def test_only_steps_that_lead_to_each_other_are_a_way() -> None:
    found, _ = gone_over(1, 400)
    best = found.best
    assert [step.rule.name for step in best.steps] == [TURNED, APART, JOINED]
    assert list(hills_of(best)) == [(TURNED, APART, JOINED)]


def test_a_way_over_a_hill_is_gone_wherever_it_pays() -> None:
    found, _ = gone_over(1, 400)
    ways = list(hills_of(found.best))
    first, rewriter = begun(scaled(3), scales)
    assert Way(first, HILL, rewriter, scales, lambda: False).to_the_end() is None, "it is a hill"
    over = climbed(first, ways, HILL, rewriter, scales, lambda: False)
    assert over is not None
    assert not [node for node in over.piece.members if node.op == "Mul"]
    assert over.cost == scales(over.piece)
    assert climbed(over, ways, HILL, rewriter, scales, lambda: False) is None
    assert climbed(first, ways, HILL, rewriter, scales, lambda: True) is None


def test_steps_that_have_nothing_to_do_are_left_out() -> None:
    first, rewriter = begun(scaled(1), scales)
    idle = SIDE_PATH
    rules = Rules([*(p.rule for p in HILL.patterns.values()), SIDE_PATHS.patterns[idle].rule], BOOK.registry)
    over = climbed(first, [(idle, TURNED, idle, APART, JOINED)], rules, rewriter, scales, lambda: False)
    assert over is not None
    assert [step.rule.name for step in over.steps] == [TURNED, APART, JOINED]


def test_a_way_that_does_not_pay_is_not_gone() -> None:
    first, rewriter = begun(scaled(2), scales)
    assert climbed(first, [(TURNED, APART)], HILL, rewriter, scales, lambda: False) is None
