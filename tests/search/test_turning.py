# pyright: basic
"""Weights of products in float32 kept the other way round on a GPU: where that may pay, and that the clock decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from superopt.cost.result import Comparison, PairTiming
from superopt.ir.files import Written
from superopt.ir.graph import Graph
from superopt.ir.onnx import load, stage
from superopt.normalize import normalize
from superopt.options import Options
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.ruleset import LATE, load_rules
from superopt.runtime.deployment import Deployment
from superopt.search.choosing import Chooser
from superopt.search.ending import Ending
from superopt.search.hunted import Gain, Hunted
from superopt.search.rulebook import open_rulebook
from superopt.search.turning import ROWS, turned
from superopt.search.variants import TIDIED, TURNED, Variant
from superopt.search.workshop import Workshop
from tests.search.test_hunt import outputs
from tests.search.written import plain, workshop_of

pytestmark = pytest.mark.ort

BOOK = open_rulebook()
CUDA = Deployment("cuda", provider_options=(("enable_cuda_graph", "1"),))
EXACT = Deployment("cuda", tf32=False)


def network(rows: int | str = ROWS, dtype: Any = np.float32) -> onnx.ModelProto:
    """A product of each kind with weights, and two of the data with itself."""
    rng = np.random.default_rng(0)
    sizes = {"a": (8, 16), "b": (16, 12), "c": (12,), "d": (12, 8), "e": (8, 4)}
    weights = [numpy_helper.from_array((rng.standard_normal(s) / 4).astype(dtype), n) for n, s in sizes.items()]
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["t1"]),
        helper.make_node("Gemm", ["t1", "b", "c"], ["t2"], alpha=0.5),
        helper.make_node("Gemm", ["t2", "d"], ["t3"]),
        helper.make_node("Transpose", ["x"], ["t4"], perm=[1, 0]),
        helper.make_node("MatMul", ["t4", "x"], ["t5"]),
        helper.make_node("MatMul", ["t3", "t5"], ["t6"]),
        helper.make_node("MatMul", ["t6", "e"], ["y"]),
    ]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    described = [helper.make_tensor_value_info(n, element, s) for n, s in (("x", [rows, 8]), ("y", [rows, 4]))]
    graph = helper.make_graph(nodes, "g", described[:1], described[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def fused(shop: Workshop) -> Variant:
    """The last product is a FusedMatMul."""
    last = shop.tidied.nodes[-1]
    trace = shop.extended([], ["linear-matmul-to-fusedmatmul-9d9c"], lambda n: n.types == last.types)
    graph, made, _ = shop.build(trace)
    assert graph.nodes[-1].op == "FusedMatMul"
    return Variant("fused", graph, (), tuple(made))


def across(graph: Graph) -> list[str]:
    """Products that read their second matrix as it is."""
    products = [node for node in graph.nodes if node.op in ("MatMul", "Gemm", "FusedMatMul")]
    return [node.op for node in products if not dict(node.attributes).get("transB", 0)]


@pytest.mark.parametrize("rows", [ROWS, "n"])
def test_all_products_with_weights_read_them_turned_and_answer_the_same(rows: int | str, tmp_path: Path) -> None:
    proto = network(rows)
    shop = workshop_of(proto, BOOK)
    found = turned(shop, fused(shop), CUDA, 0)
    assert found is not None
    assert found.is_guess
    assert across(found.graph) == ["MatMul", "MatMul"]  # those of the data with itself
    used = {step.rule for record in found.trace for step in record.steps}
    assert used >= {rule.name for rule in load_rules([LATE])}
    shop.build(found.trace, strict=True)
    written = stage(shop.model, found.graph, tmp_path, "m.onnx", "m.onnx.data")
    x = np.random.default_rng(1).standard_normal((ROWS, 8)).astype(np.float32) / 32
    ours, theirs = outputs(written.path.read_bytes(), x), outputs(proto.SerializeToString(), x)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    assert turned(shop, found, CUDA, 0) is None  # nothing is left to turn


@pytest.mark.parametrize(
    ("proto", "timed"),
    [
        (network(ROWS - 1), CUDA),
        (network(dtype=np.float16), CUDA),
        (network(), EXACT),
        (network(), Deployment("cpu")),
    ],
)
def test_nothing_is_turned_where_it_cannot_pay(proto: onnx.ModelProto, timed: Deployment) -> None:
    shop = workshop_of(proto, BOOK)
    assert turned(shop, plain(shop), timed, 0) is None


def test_weights_that_something_else_reads_count_as_growth() -> None:
    proto = network()
    proto.graph.node.append(helper.make_node("Mul", ["a", "s"], ["z"]))
    proto.graph.input.append(helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, []))
    proto.graph.output.append(helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [8, 16]))
    shop = workshop_of(proto, BOOK)
    assert turned(shop, plain(shop), CUDA, 4 * 8 * 16 - 1) is None
    assert turned(shop, plain(shop), CUDA, 4 * 8 * 16) is not None


def test_a_model_of_very_many_products_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.search.turning.MOST", 3)
    shop = workshop_of(network(), BOOK)
    assert turned(shop, plain(shop), CUDA, 0) is None


def test_what_nobody_has_timed_has_no_number_of_what_somebody_has() -> None:
    shop = workshop_of(network(), BOOK)
    gain = Gain(7, 1, (2.0, 1.0), (2.0, 1.0), ("some-rule",))
    hunted = Hunted(gains=[gain])
    found = turned(shop, plain(shop), CUDA, 0, hunted.numbered)
    assert found is not None
    assert {record.kind for record in found.trace} == {8}
    assert hunted.saving(found.trace) == 0.0


def test_a_search_does_not_look_for_what_is_late() -> None:
    shop = workshop_of(network(), BOOK)
    late = {rule.name for rule in load_rules([LATE])}
    rules = BOOK.rules
    assert late == set(rules.late)
    assert late <= set(rules.patterns)
    assert len(rules) == len(rules.patterns) - len(late) == sum(1 for _ in rules.searched)
    rewriter = shop.rewriter()
    _, pieces = shop.replayed([])
    (piece,) = pieces.values()
    found = {m.pattern.rule.name for n in piece.nodes for m, _ in rewriter.moves(rules, n, piece)}
    assert found
    assert not late & found


@dataclass
class Timing:
    """A trial in which turned weights are so much faster."""

    speedup: float
    options: Options = field(default_factory=Options)
    timed: Deployment = CUDA

    def compare_all(self, models, seconds=None, heard=None):
        first, *others = models
        assert first == TIDIED
        pairs = tuple(
            PairTiming(
                name=n, verdict="not faster", reason="", speedup=self.speedup, interval=None, sittings=1, pairs=9
            )
            for n in others
        )
        return Comparison(subjects=(), pairs=pairs, seconds=1.0, one_at_a_time=False), False


@pytest.mark.parametrize(("speedup", "winner"), [(1.05, TURNED), (1.0, TIDIED)])
def test_the_clock_decides(speedup: float, winner: str, tmp_path: Path) -> None:
    source = tmp_path / "source.onnx"
    source.write_bytes(network().SerializeToString())
    model = load(source)
    shop = Workshop(model, normalize(model).graph, BOOK, Vocabulary(contrib=True))
    count = 0

    def put(graph: Graph) -> Written:
        nonlocal count
        count += 1
        return stage(model, graph, tmp_path / f"candidate{count}", "m.onnx", "m.onnx.data")

    chooser = Chooser(Timing(speedup), model, 1.0, Ending(), put)  # pyright: ignore[reportArgumentType]
    chosen, files = chooser.of_all(shop, (), Hunted())
    assert chosen.name == winner
    assert (TURNED in files) == (winner == TURNED)
    assert (tmp_path / "candidate2").exists() == (winner == TURNED)
