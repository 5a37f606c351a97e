# pyright: basic
"""Where in a graph mutants may stand: across regions, not across detours, and elsewhere when the clock says no."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper

from superopt.cost.predict import Predictor
from superopt.ir.onnx import parse
from superopt.normalize import normalize
from superopt.partial.corrected import mutants
from superopt.partial.families import Family, canvases, tiles
from superopt.partial.lift import originals
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rewriter, Rules
from superopt.rewrite.rule import Rule
from superopt.rewrite.whole import piece_of
from superopt.search.learning import Learner
from superopt.search.mutated import mutated_regions
from superopt.search.regions import cut
from superopt.search.scales import Scales
from tests.search.clocks import Counting
from tests.search.heads import (
    CHANNELS,
    DEVICE,
    LEVELS,
    REGISTRY,
    WINDOW,
    assert_same_outputs,
    built,
    hunted,
    model,
    operators,
)

pytestmark = [pytest.mark.ort, pytest.mark.smt]


def over_barriers() -> onnx.ModelProto:
    """Images of which one goes on to an operator that superopt does not know."""
    nodes = [
        helper.make_node("Conv", ["x0", "k"], ["y0"], **WINDOW),
        helper.make_node("Conv", ["x1", "k"], ["s1"], **WINDOW),
        helper.make_node("Softsign", ["s1"], ["y1"]),
    ]
    weights = {"k": np.random.default_rng(0).standard_normal((CHANNELS, CHANNELS, 3, 3))}
    ports = [{f"{v}{k}": [1, CHANNELS, *LEVELS[k]] for k in range(2)} for v in "xy"]
    return model(nodes, ports[0], weights, ports[1])


@pytest.mark.usefixtures("canvases_only")
def test_a_program_may_reach_over_several_regions() -> None:
    proto = over_barriers()
    shop, found = hunted(proto)
    rewriter = Rewriter(REGISTRY, 17, Vocabulary())
    piece = piece_of(normalize(parse(proto.SerializeToString())).graph, rewriter.constants)
    regions = cut(piece, lambda node: not isinstance(rewriter.reader.read(node), str))
    assert all(sum(n.op == "Conv" for n in region.members) < 2 for region in regions)
    after = built(shop, found)
    assert operators(after, "Conv") == 1
    assert_same_outputs(proto, after)


def in_a_row(between: str) -> onnx.ModelProto:
    """The second image of a head is computed from what the head makes of the first."""
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["y0"], **WINDOW),
        helper.make_node(between, ["y0"], ["z"]),
        helper.make_node("Conv", ["z", "k"], ["y1"], **WINDOW),
    ]
    weights = {"k": np.random.default_rng(0).standard_normal((CHANNELS, CHANNELS, 3, 3)) / 6}
    shape = [1, CHANNELS, 5, 5]
    return model(nodes, {"x": shape}, weights, {"y0": shape, "y1": shape})


@pytest.mark.usefixtures("canvases_only")
@pytest.mark.parametrize("between", ["Softsign", "Abs"])
def test_nodes_that_are_no_region_are_left_alone(between: str) -> None:
    """Before anything is mutated, timed or proved."""
    proto = in_a_row(between)
    shop, found = hunted(proto)
    assert not found.trace
    assert (found.mutated.mutants, found.mutated.timed, found.mutated.rules) == (0, 0, {})
    assert_same_outputs(proto, built(shop, found))


def three_images() -> onnx.ModelProto:
    """A head on two images, and a convolution with weights of its own."""
    rng = np.random.default_rng(0)
    shape = [1, CHANNELS, 12, 5]
    weights = {name: rng.standard_normal((CHANNELS, CHANNELS, 3, 3)) for name in ("k", "q")}
    nodes = [helper.make_node("Conv", [f"x{n}", k], [f"y{n}"], **WINDOW) for n, k in enumerate(("k", "k", "q"))]
    return model(nodes, {f"x{n}": shape for n in range(3)}, weights, {f"y{n}": shape for n in range(3)})


def test_regions_of_mutants_have_no_node_in_common() -> None:
    """The larger program has its nodes to itself."""
    opened = parse(three_images().SerializeToString())
    rewriter = Rewriter(REGISTRY, 17, Vocabulary())
    piece = piece_of(opened.graph, rewriter.constants)
    programs = {len(p.steps): p for p in originals(piece, rewriter)}

    def first(steps: int, family: Family) -> Rule:
        return replace(next(mutants(programs[steps], REGISTRY, (family,))).rule, name=f"m{steps}", origin="partial x")

    rules = Rules([first(2, canvases), first(1, tiles)], REGISTRY)
    scales = Scales(opened, {}, Learner(Predictor({}, DEVICE)), Counting())  # pyright: ignore[reportArgumentType]
    offers = list(mutated_regions(piece, "", rules, rewriter, scales))
    assert [len(region.members) for region, _ in offers] == [2, 1]
    assert len({node for region, _ in offers for node in region.members}) == 3
    assert all(len(group) > 1 for _, group in offers)
