# pyright: basic
"""The search on whole graphs, with a clock that counts nodes: what is found, reused, refused and told."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from superopt.cost.predict import Predictor
from superopt.ir.graph import Graph
from superopt.ir.onnx import encode, parse
from superopt.normalize import normalize
from superopt.options import Options
from superopt.report import CheckReport
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter
from superopt.rewrite.whole import piece_of
from superopt.search.candidate import Candidate
from superopt.search.ending import Ending
from superopt.search.hunted import Budget
from superopt.search.judge import GUESSED, Judge, Look
from superopt.search.learning import spearman
from superopt.search.optimize import Destination, optimize_model
from superopt.search.parallel import Task, explore_all
from superopt.search.variants import ALL, TIDIED, Repairer, Variant, variants
from superopt.search.workshop import Workshop
from tests.search.clocks import Counting
from tests.search.counted import GIVEN, counting_world
from tests.search.written import written_book

pytestmark = pytest.mark.ort

BOOK = written_book()
"""The search itself is tested with rules that people wrote, whatever else ships."""
WIDTH = 32


def lora(layers: int, scale: float = 1.0, seed: int = 0) -> onnx.ModelProto:
    """x·W + (x·A)·B, then Relu, a number of times."""
    rng = np.random.default_rng(seed)
    nodes, weights = [], []
    x = "x"
    for k in range(layers):
        for name, shape in (("w", (WIDTH, WIDTH)), ("a", (WIDTH, 4)), ("b", (4, WIDTH))):
            array = (scale * rng.standard_normal(shape) / 6).astype(np.float32)
            weights.append(numpy_helper.from_array(array, f"{name}{k}"))
        nodes += [
            helper.make_node("MatMul", [x, f"w{k}"], [f"main{k}"]),
            helper.make_node("MatMul", [x, f"a{k}"], [f"low{k}"]),
            helper.make_node("MatMul", [f"low{k}", f"b{k}"], [f"high{k}"]),
            helper.make_node("Add", [f"main{k}", f"high{k}"], [f"sum{k}"]),
            helper.make_node("Relu", [f"sum{k}"], [f"y{k}"]),
        ]
        x = f"y{k}"
    ports = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["n", WIDTH]) for n in ("x", x)]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def hunted(
    proto: onnx.ModelProto, growth: int = 1 << 20, contrib: bool = True, ending: Ending | None = None,
    beside: float = 0.0, sign: int = 1, **limits,
):  # fmt: skip
    model = parse(proto.SerializeToString())
    shop = Workshop(model, normalize(model).graph, BOOK, Vocabulary(contrib=contrib))
    budget = Budget(**{"search": 60, "measure": 60, "candidates": 100, "alpha": 1.05, "growth": growth, **limits})
    clock = Counting(beside, sign)
    found, _ = shop.hunt(clock, Predictor({"n": 16}), {"n": 16}, budget, lambda *_: None, ending)  # pyright: ignore[reportArgumentType]
    return shop, found, clock


def outputs(model: bytes, x: np.ndarray) -> np.ndarray:
    import onnxruntime as ort

    return np.asarray(ort.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0])


def test_low_rank_branches_are_merged_in_every_layer_and_searched_once() -> None:
    proto = lora(6)
    shop, found, _ = hunted(proto)
    graph, made, notes = shop.build(found.trace, strict=True)
    assert not notes
    assert sum(node.op in ("MatMul", "Gemm") or node.domain != "" for node in graph.nodes) == 6
    assert {record.kind for record in made} != set()
    assert found.distinct <= found.regions + 3
    result = encode(shop.model, graph).SerializeToString()
    x = np.random.default_rng(1).standard_normal((5, WIDTH)).astype(np.float32)
    np.testing.assert_allclose(outputs(result, x), outputs(proto.SerializeToString(), x), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("beside", "sure"), [(0.0, True), (0.1, False)])
def test_what_a_region_cannot_tell_is_found_in_hope(beside: float, sure: bool) -> None:
    """Beside 0.1 s of something else the gain of some 200 µs is under a percent."""
    shop, found, _ = hunted(lora(2), beside=beside)
    assert found.gains
    assert all(gain.sure is sure for gain in found.gains)
    assert all(gain.measured[1] < gain.measured[0] for gain in found.gains)
    assert [v.name for v in variants(shop, (), found)][:2] == [TIDIED, ALL]


def test_where_no_time_is_left_to_measure_what_is_predicted_much_faster_is_used_in_hope() -> None:
    shop, found, clock = hunted(lora(2), measure=0.0)
    assert clock.asked == 0
    assert found.gains
    assert all(not gain.sure and not gain.timed and not gain.confirmed for gain in found.gains)
    assert all(gain.predicted[1] <= GUESSED * gain.predicted[0] for gain in found.gains)
    _, rewrites, _ = shop.build(found.trace)
    assert all(r.measured_us_after is None for r in shop.rewrites(rewrites, found))


def test_of_candidates_that_are_alike_one_that_is_worth_it_is_used() -> None:
    """All of it gains 2 %, half of it 1 %, with fewer steps but not enough to be sure."""
    _, found, _ = hunted(lora(2), beside=0.0194)
    assert [(gain.sure, len(gain.rules)) for gain in found.gains] == [(True, 2)]


def test_what_is_slower_by_the_clock_is_not_hoped_for() -> None:
    """Here the clock takes the longer, the fewer nodes there are."""
    _, found, _ = hunted(lora(2), beside=1.0, sign=-1)
    assert not found.gains


@pytest.mark.parametrize("products", [7, 5, 3])
def test_what_stays_of_a_refused_region_is_replayed_word_for_word(products: int) -> None:
    """Three low-rank branches are merged one after the other; the check refuses graphs with too few products."""
    shop, found, _ = hunted(lora(3))
    graph, made, _ = shop.build(found.trace)

    def check(graph: Graph) -> CheckReport:
        differs = sum(node.op == "MatMul" for node in graph.nodes) < products
        return CheckReport(status="different" if differs else "equal", reason="", runs=1, inputs=[], outputs=[])

    repairer = Repairer(shop.model, shop, None, check, lambda *_: None)
    mended = repairer.repaired(Variant(ALL, graph, (), tuple(made)))
    assert mended.check is not None
    assert mended.check.status == "equal"
    assert sum(node.op == "MatMul" for node in mended.graph.nodes) == products
    again, made, notes = shop.build(mended.trace, strict=True)
    assert not notes
    assert encode(shop.model, again).SerializeToString() == encode(shop.model, mended.graph).SerializeToString()
    assert mended.is_repaired == (products > 3)
    assert found.saving(mended.trace) == (0.0 if products > 3 else found.saving(found.trace))


def test_rewrites_tell_their_rule_proof_and_cost() -> None:
    shop, found, _ = hunted(lora(2))
    _, made, _ = shop.build(found.trace)
    rewrites = shop.rewrites(made, found)
    assert rewrites
    for rewrite in rewrites:
        assert rewrite.kind == "rule"
        assert rewrite.proof.startswith("unbounded z3=")
        assert rewrite.rule_digest in rewrite.proof
        assert rewrite.predicted_us_before is not None
        assert (rewrite.measured_us_before or 0) > (rewrite.measured_us_after or 0)


def test_new_nodes_carry_the_rule_that_made_them() -> None:
    shop, found, _ = hunted(lora(1))
    graph, _, _ = shop.build(found.trace)
    proto = encode(shop.model, graph)
    marked = {e.value.split()[0] for n in proto.graph.node for e in n.metadata_props if e.key == "superopt.rule"}
    assert marked <= {step.rule for record in found.trace for step in record.steps}
    assert marked


def test_nothing_may_grow_past_the_cap() -> None:
    """(x·A)·B with a narrow middle: A·B is larger than both."""
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("a", (16, 4)), ("b", (4, 16)))
    ]
    nodes = [helper.make_node("MatMul", ["x", "a"], ["t"]), helper.make_node("MatMul", ["t", "b"], ["y"])]
    ports = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 16]) for n in ("x", "y")]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", ports[:1], ports[1:], weights), opset_imports=[helper.make_opsetid("", 17)]
    )
    proto.ir_version = 8
    _, found, _ = hunted(proto)
    assert found.trace
    _, found, _ = hunted(proto, growth=100)
    assert not found.trace
    assert any("more than --growth allows" in note for note in found.notes)


def test_standard_means_standard() -> None:
    shop, found, _ = hunted(lora(2), contrib=False)
    graph, _, _ = shop.build(found.trace)
    assert {node.domain for node in graph.nodes} == {""}


def test_without_time_nothing_is_searched_and_that_is_said() -> None:
    _, found, clock = hunted(lora(2), search=0.0)
    assert (found.trace, found.exhausted, clock.asked) == ([], False, 0)


def test_an_end_that_is_asked_for_keeps_what_was_found() -> None:
    _, nothing, clock = hunted(lora(2), ending=Ending(is_asked=lambda: True))
    assert (nothing.trace, nothing.exhausted, clock.asked) == ([], False, 0)
    told: list[bool] = []
    shop, found, _ = hunted(lora(2), ending=Ending(lambda: bool(told), lambda: told.append(True)))
    assert told
    assert found.trace
    assert not found.exhausted
    assert found.saving(found.trace) > 0
    assert shop.build(found.trace, strict=True)[1]
    assert hunted(lora(2))[1].exhausted


def test_what_was_gained_so_far_is_forecast() -> None:
    """The clock takes 302 µs for a layer before and 102 after, so that the forecast must come near three."""
    told: list[tuple[float, str]] = []
    hunted(lora(4), ending=Ending(is_worth=lambda *worth: told.append(worth)))
    assert [basis for _, basis in told] == ["predicted"] * len(told)
    speedups = [speedup for speedup, _ in told]
    assert speedups == sorted(speedups)
    assert 2.0 < speedups[-1] < 3.1
    told.clear()
    hunted(lora(2), beside=1.0, sign=-1, ending=Ending(is_worth=lambda *worth: told.append(worth)))
    assert told == [], "nothing was gained"


@pytest.mark.parametrize("cores", [1, 2])
def test_a_search_under_way_hears_of_the_end(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    """In this process, and in those that search regions side by side."""
    monkeypatch.setattr("superopt.search.parallel.usable_cores", lambda: cores)
    model = parse(lora(1).SerializeToString())
    rewriter = Rewriter(BOOK.registry, 17, Vocabulary(contrib=True), model.functions)
    piece = piece_of(normalize(model).graph, rewriter.constants)

    def slow(piece: Piece) -> float:
        time.sleep(0.02)
        return float(len(piece.nodes))

    tasks = [Task(piece, slow, 600.0)] * 2
    whole = explore_all(tasks, BOOK.rules, rewriter, 1.05, 100)
    hurried = explore_all(tasks, BOOK.rules, rewriter, 1.05, 100, lambda: True)
    assert all(early.seen < late.seen for early, late in zip(hurried, whole, strict=True))
    assert not any(early.exhausted for early in hurried)


def test_the_same_search_twice_is_the_same() -> None:
    first, second = (hunted(lora(3))[1].trace for _ in range(2))
    assert first == second


def test_rank_correlation() -> None:
    assert spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert spearman([1, 2, 3, 4], [4, 3, 2, 1]) == pytest.approx(-1)
    assert spearman([1, 2], [1, 2]) is None
    assert spearman([1, 1, 1], [1, 2, 3]) is None


def test_frozen_costs_give_the_same_bytes(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the clock said once is in the file, and this one says something else every time. What was not asked before
    is added by a later run; once nothing is missing, every run decides the same, region by region."""
    world, random = counting_world(monkeypatch), np.random.default_rng(0)

    def moody(subjects, *given, **more):
        times = world.time_regions(subjects, *given, **more)
        return [None if t is None else t * random.uniform(0.7, 1.4) for t in times]

    monkeypatch.setattr("superopt.cost.timer.time_regions", moody)
    source = tmp_path / "in.onnx"
    source.write_bytes(lora(4).SerializeToString())
    costs = tmp_path / "costs.db"
    outcomes, kept = [], []
    for k in range(12):
        where = Destination(tmp_path / str(k), "out.onnx", "out.onnx.data", False)
        options = Options.of(target="cpu", costs=costs, **GIVEN, accept="not-slower", partial=False)
        outcomes.append(optimize_model(source, where, options, lambda *_: None, lambda *_: None))
        kept.append(_entries(costs))
        if kept[-2:] == [kept[-1]] * 2:
            break
    first, second = outcomes[-2:]
    assert kept[-1] == kept[-2]
    assert first.report.trace
    assert first.written.path.read_bytes() == second.written.path.read_bytes()
    assert first.report.trace == second.report.trace
    assert first.report.deployment.options == second.report.deployment.options


def _entries(file: Path) -> list[int]:
    with sqlite3.connect(file) as database:
        return [database.execute(f"select count(*) from {table}").fetchone()[0] for table in ("costs", "regions")]


def test_where_the_first_choice_was_lucky_the_next_gets_its_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    honest = Judge._again

    def unlucky_once(self: Judge, look: Look, chosen: Candidate):
        asked.append(len(chosen.steps))
        before, after, late = honest(self, look, chosen)
        return (before, after, late) if len(asked) > 1 else (after, before, late)

    monkeypatch.setattr(Judge, "_again", unlucky_once)
    _, found, _ = hunted(lora(2))
    assert len(asked) > 1
    assert found.gains


@pytest.mark.parametrize("late", [True, False])
def test_what_is_clearly_faster_is_hoped_for_where_no_time_is_left_to_look_again(
    monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    monkeypatch.setattr(Judge, "_again", lambda *_: (None, None, late))
    _, found, _ = hunted(lora(2))
    assert bool(found.gains) == late
    assert not any(gain.sure or gain.confirmed for gain in found.gains)
