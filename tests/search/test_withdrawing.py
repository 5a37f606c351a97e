# pyright: basic
"""An option that some convolutions lose by: their biases are taken out of its reach, and the clock decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from superopt.cost.result import PairTiming
from superopt.errors import CannotRun
from superopt.ir.files import Written
from superopt.ir.graph import Graph
from superopt.ir.onnx import load, stage
from superopt.normalize import normalize
from superopt.options import Options
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.ruleset import SHIPPED, load_rules
from superopt.runtime.deployment import Deployment
from superopt.search.choosing import Chooser
from superopt.search.ending import Ending
from superopt.search.hunted import Hunted
from superopt.search.variants import TIDIED, WITHDRAWN, Variant
from superopt.search.withdrawing import APART, parting, withdrawn
from superopt.search.workshop import Workshop
from tests.search.test_hunt import BOOK, outputs
from tests.search.written import plain, workshop_of

pytestmark = pytest.mark.ort

NHWC = Deployment("cuda", provider_options=(("enable_cuda_graph", "1"), ("prefer_nhwc", "1")))
FUSED = Deployment("cuda", provider_options=(*NHWC.provider_options, ("fuse_conv_bias", "1")))


def network(groups: Sequence[int], biased: bool = True) -> onnx.ModelProto:
    """Convolutions of eight channels one after the other, in so many groups each."""
    rng = np.random.default_rng(0)
    nodes, weights, x = [], [], "x"
    for k, count in enumerate(groups):
        names = [f"k{k}", f"b{k}"][: 1 + biased]
        filters = rng.standard_normal((8, 8 // count, 3, 3)).astype(np.float32)
        weights += [numpy_helper.from_array(filters, f"k{k}")]
        weights += [numpy_helper.from_array(rng.standard_normal(8).astype(np.float32), f"b{k}")] if biased else []
        nodes += [helper.make_node("Conv", [x, *names], [f"c{k}"], group=count, pads=[1, 1, 1, 1])]
        nodes += [helper.make_node("Relu", [f"c{k}"], [x := f"r{k}"])]
    nodes[-1].output[0] = "y"
    shape = [1, 8, 6, 6]
    described = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", described[:1], described[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_biases_of_convolutions_in_groups_are_apart_and_the_others_stay(tmp_path: Path) -> None:
    proto = network((1, 8, 1, 4))
    shop = workshop_of(proto, BOOK)
    found = withdrawn(shop, plain(shop), NHWC)
    assert found is not None
    assert found.deployment == FUSED
    apart = [node for node in found.graph.nodes if node.kind == "Sum"]
    assert len(apart) == 2
    assert sorted(len(n.inputs) for n in found.graph.nodes if n.kind == "Conv") == [2, 2, 3, 3]
    assert [step.rule for record in found.trace for step in record.steps] == [APART, APART]
    shop.build(found.trace, strict=True)
    written = stage(shop.model, found.graph, tmp_path, "m.onnx", "m.onnx.data")
    x = np.random.default_rng(1).standard_normal((1, 8, 6, 6)).astype(np.float32)
    ours, theirs = outputs(written.path.read_bytes(), x), outputs(proto.SerializeToString(), x)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_what_was_taken_apart_elsewhere_is_whole_again() -> None:
    shop = workshop_of(network((1, 8)), BOOK)
    everywhere = shop.extended([], [APART], lambda node: node.kind == "Conv")
    graph, made, _ = shop.build(everywhere)
    assert [node.kind for node in graph.nodes].count("Sum") == 2
    found = withdrawn(shop, Variant("all apart", graph, (), tuple(made)), NHWC)
    assert found is not None
    assert [node.kind for node in found.graph.nodes].count("Sum") == 1


@pytest.mark.parametrize(
    ("proto", "timed"),
    [
        (network((1, 1)), NHWC),  # the option alone does
        (network((8, 4)), NHWC),  # nothing would gain by it
        (network((1, 8), biased=False), NHWC),
        (network((1, 8)), Deployment("cuda")),  # channels first, where it does not pay
        (network((1, 8)), FUSED),  # settled
        (network((1, 8)), Deployment("cuda", provider_options=(("prefer_nhwc", "1"), ("fuse_conv_bias", "0")))),
        (network((1, 8)), Deployment("cpu")),
    ],
)
def test_nothing_is_taken_apart_where_it_cannot_pay(proto: onnx.ModelProto, timed: Deployment) -> None:
    shop = workshop_of(proto, BOOK)
    assert withdrawn(shop, plain(shop), timed) is None


@dataclass
class Racing:
    """A trial in which the one for the option wins, or not."""

    verdict: Any
    options: Options
    raced: int = 0
    timed: Deployment = NHWC

    def race_deployed(self, original, candidate, seconds):
        self.raced += 1
        assert (original[1], candidate[1]) == (NHWC, FUSED)
        assert [n.kind for n in load(candidate[0]).graph.nodes].count("Sum") == 1
        assert "Sum" not in [n.kind for n in load(original[0]).graph.nodes]
        if not self.verdict:
            raise CannotRun("no")
        return PairTiming(name="c", verdict=self.verdict, reason="", speedup=1.3, interval=None, sittings=1, pairs=9)


@pytest.mark.parametrize(
    ("verdict", "options", "winner"),
    [
        ("faster", "search", WITHDRAWN),
        ("not faster", "search", TIDIED),
        ("", "search", TIDIED),
        ("faster", "fixed", TIDIED),
    ],
)
def test_the_clock_decides(verdict: str, options: str, winner: str, tmp_path: Path) -> None:
    source = tmp_path / "source.onnx"
    source.write_bytes(network((1, 8)).SerializeToString())
    model = load(source)
    shop = Workshop(model, normalize(model).graph, BOOK, Vocabulary(contrib=True))
    trial = Racing(verdict, Options(options=options))  # pyright: ignore[reportArgumentType]

    def put(graph: Graph) -> Written:
        return stage(model, graph, tmp_path / "candidate", "m.onnx", "m.onnx.data")

    chooser = Chooser(trial, model, 1.0, Ending(), put)  # pyright: ignore[reportArgumentType]
    chosen, files = chooser.of_all(shop, (), Hunted())
    assert chosen.name == winner
    assert trial.raced == (options == "search")
    assert list(files) == ([WITHDRAWN] if winner == WITHDRAWN else [])
    assert (tmp_path / "candidate").exists() == (winner == WITHDRAWN)


def test_sums_behind_products_stay_where_those_behind_convolutions_are_made_anew() -> None:
    rules = load_rules([SHIPPED / "kernels.rules", SHIPPED / "generated" / "kernels.rules"])
    assert [rule for rule in rules if rule.name.startswith("kernels-matmul-add-to-matmul-sum")]
    assert parting(rules) == {APART}
