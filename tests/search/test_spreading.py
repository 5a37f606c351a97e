# pyright: basic
"""What was found in one block of a network, in all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from superopt.cost.predict import Predictor
from superopt.ir.onnx import encode
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.whole import piece_of
from superopt.search.hunted import FORESEEN, SPREAD
from superopt.search.learning import Learner
from superopt.search.scales import Scales
from superopt.search.spreading import Spreader
from superopt.search.variants import guessed
from superopt.search.workshop import Workshop
from tests.search.clocks import Counting
from tests.search.counted import World, gpu_file, predicted, saved
from tests.search.test_guessing import Slow, products, searched
from tests.search.test_hunt import BOOK, WIDTH, hunted, lora, outputs

pytestmark = pytest.mark.ort

LAYERS = 12


def with_barriers() -> onnx.ModelProto:
    """An operator without a spec in the middle; it gives back what it is given."""
    proto = lora(LAYERS)
    for node in proto.graph.node:
        for k, name in enumerate(node.input):
            if name == "y5":
                node.input[k] = "same"
    at = next(k for k, node in enumerate(proto.graph.node) if "y5" in node.output)
    proto.graph.node.insert(at + 1, helper.make_node("Shrink", ["y5"], ["same"], bias=0.0, lambd=0.0))
    return proto


def begun(proto: onnx.ModelProto):
    """A search's trace, of which the first region alone is kept."""
    shop, found, clock = hunted(proto)
    assert len(found.trace) > 1, "else there is nothing to spread"
    return shop, found.trace[:1], clock


def spread(shop: Workshop, done, clock: Counting, out_of_time=lambda: False, ways=True):
    rewriter = shop.rewriter()
    sizes = {"n": 16}
    rules = Rules([BOOK.rules.patterns.rules[step.rule] for record in done for step in record.steps], BOOK.registry)
    chains = {tuple(step.rule for step in record.steps) for record in done if len(record.steps) > 1} if ways else ()
    scales = Scales(shop.model, sizes, Learner(Predictor(sizes)), clock)  # pyright: ignore[reportArgumentType]
    spreader = Spreader(rules, tuple(chains), rewriter, scales, out_of_time)
    graph, *_ = shop.build(done)
    return list(spreader.spread(piece_of(graph, rewriter.constants), "", 10))


def same(shop: Workshop, graph, proto: onnx.ModelProto) -> None:
    x = np.random.default_rng(1).standard_normal((5, WIDTH)).astype(np.float32)
    found = outputs(encode(shop.model, graph).SerializeToString(), x)
    np.testing.assert_allclose(found, outputs(proto.SerializeToString(), x), rtol=2e-4, atol=2e-5)


def test_what_one_region_taught_is_done_in_all_others() -> None:
    proto = lora(LAYERS)
    shop, done, clock = begun(proto)
    assert products(shop.build(done)[0]) > LAYERS
    [(record, gain)] = spread(shop, done, clock)
    assert record.kind == gain.kind == 11
    assert gain.measured == gain.predicted
    assert gain.predicted[1] < gain.predicted[0]
    assert (gain.sure, gain.timed, gain.confirmed) == (False, False, False), "nobody has timed it"
    graph, made, notes = shop.build([*done, record], strict=True)
    assert not notes
    assert made == [*done, record]
    assert products(graph) == LAYERS
    same(shop, graph, proto)


def test_there_is_a_region_for_each_side_of_a_barrier() -> None:
    proto = with_barriers()
    shop, done, clock = begun(proto)
    found = spread(shop, done, clock)
    assert [record.kind for record, _ in found] == [11, 12]
    graph, _, notes = shop.build([*done, *(record for record, _ in found)], strict=True)
    assert not notes
    assert products(graph) == LAYERS
    same(shop, graph, proto)


def test_without_rules_or_time_nothing_is_done() -> None:
    shop, done, clock = begun(lora(LAYERS))
    assert not spread(shop, [], clock)
    assert not spread(shop, done, clock, out_of_time=lambda: True)


def test_what_is_too_large_to_be_kept_many_times_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, done, clock = begun(with_barriers())
    assert len(spread(shop, done, clock)) == 2
    left = sum(node.op != "Shrink" for node in shop.build(done)[0].nodes)
    monkeypatch.setattr("superopt.search.spreading.LARGEST", left // 2)
    assert len(spread(shop, done, clock)) == 1, "one side is smaller: a region of it is done"


def kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all regions but the first had ended elsewhere."""
    monkeypatch.setattr("superopt.search.workshop.trimmed", lambda found, *_: found.trace[:1])


def test_it_stands_for_election_where_whole_models_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    kept_once(monkeypatch)
    _, shop, found = searched(Slow(), layers=LAYERS)
    assert products(shop.build(found.trace)[0]) > LAYERS
    graph, made, notes = shop.build(found.guesses[SPREAD], strict=True)
    assert not notes
    assert products(graph) == LAYERS
    assert made[:1] == found.trace
    kinds = [record.kind for name in (SPREAD, FORESEEN) for record in found.guesses[name]]
    assert max(kinds) <= found.numbered
    assert all(v.is_guess for v in guessed(shop, (), found, []))


def test_what_has_spread_already_is_no_other_variant() -> None:
    _, _, found = searched(Slow(), layers=LAYERS)
    assert found.trace
    assert SPREAD not in found.guesses


def test_weights_grow_as_far_as_they_may(monkeypatch: pytest.MonkeyPatch) -> None:
    kept_once(monkeypatch)
    _, _, found = searched(Slow(), layers=LAYERS, growth=-(1 << 30))
    assert SPREAD not in found.guesses


def test_a_predicted_result_has_it_and_says_that_it_was_not_recorded(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = saved(tmp_path / "m.onnx", lora(LAYERS))
    file = gpu_file(model, tmp_path)
    kept_once(monkeypatch)
    report = predicted(model, tmp_path, file)
    assert report.prediction is not None
    assert (report.prediction.recorded_gains, report.prediction.predicted_gains) == (1, 1)
    left = onnx.load(tmp_path / "out.onnx").graph.node
    assert sum(n.op_type in ("MatMul", "Gemm") for n in left) == LAYERS
