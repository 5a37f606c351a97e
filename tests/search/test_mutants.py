# pyright: basic
"""Mutants in the search: found, timed, proved, used and told; with a clock that counts nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from superopt.cost.coefficients import Coefficients
from superopt.cost.columns import Column
from superopt.cost.regions import RegionSubject
from superopt.cost.turn import ALONE
from superopt.partial.corrected import mutants
from superopt.partial.families import tiles
from superopt.rewrite.ruleset import state
from superopt.rewrite.text import parse_rules
from superopt.runtime.deployment import Deployment
from superopt.search.trace import own_rules_used
from tests.search.heads import (
    CHANNELS,
    LEVELS,
    REGISTRY,
    WINDOW,
    assert_same_outputs,
    built,
    head,
    hunted,
    model,
    operators,
)
from tests.search.pyramids import pyramid

pytestmark = [pytest.mark.ort, pytest.mark.smt]


@pytest.mark.parametrize("layers", [1, 2])
def test_levels_of_a_pyramid_come_to_lie_on_one_canvas(layers: int) -> None:
    proto, shop, found = pyramid(layers)
    rules = found.mutated.rules
    assert rules
    assert all(state(rule, REGISTRY) == "proved" and rule.is_partial for rule in rules.values())
    assert shop.book.digests.keys() == rules.keys()
    assert {step.rule for record in found.trace for step in record.steps} <= rules.keys()
    after = built(shop, found)
    assert operators(after, "Conv") == layers
    assert_same_outputs(proto, after)
    told = own_rules_used(found.trace, rules, shop.book.digests)
    assert [m.name for m in told] == [found.trace[0].steps[0].rule]
    assert told[0].digest in told[0].name
    assert parse_rules(told[0].text)[0] == rules[told[0].name]
    counts = found.mutated
    assert counts.programs > 1
    assert counts.mutants >= counts.timed >= len(rules) > 0


@pytest.mark.parametrize(("layers", "solver"), [(1, r"z3=[\d.]+"), (2, r"z3=[\d.]+\+lemmas")])
def test_rewrites_say_that_they_are_partial_how_they_are_proved_and_what_was_mended(layers: int, solver: str) -> None:
    _, shop, found = pyramid(layers)
    (rewrite,) = shop.rewrites(found.trace, found)
    assert rewrite.kind == "partial"
    assert rewrite.detail.endswith(" images on one canvas, with gaps. Nothing is mended.")
    assert re.fullmatch(rf"unbounded {solver} digest={rewrite.rule_digest}", rewrite.proof)
    assert (rewrite.measured_us_before or 0) > (rewrite.measured_us_after or 0)
    assert rewrite.predicted_us_before is not None


class MoreIsFaster:
    """A clock by which every convolution makes a graph faster, so that recomputing pays."""

    turn = ALONE
    deployment = Deployment("cpu")

    def time(self, subjects: Sequence[RegionSubject], seconds: float, tell=None, **_) -> list[float | None]:
        return [1.0 / (1 + operators(onnx.load_from_string(s.model()), "Conv")) for s in subjects]


def test_corrections_are_part_of_the_rule_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("superopt.search.mutants.mutants", partial(mutants, families=(tiles,)))
    nodes = [helper.make_node("Conv", ["x", "k"], ["y"], **WINDOW)]
    weights = {"k": np.random.default_rng(0).standard_normal((2, CHANNELS, 3, 3))}
    proto = model(nodes, {"x": [1, CHANNELS, 24, 5]}, weights, {"y": [1, 2, 24, 5]})
    operations = Coefficients({Column("convolution", "operation"): 1e-9})
    shop, found = hunted(proto, clock=MoreIsFaster(), coefficients=operations)
    (rewrite,) = shop.rewrites(found.trace, found)
    assert rewrite.kind == "partial"
    told = r"\d tiles of axis 2 as a batch. [1-9][\d.]+% of the results are mended, in [1-9] boxes."
    assert re.fullmatch(told, rewrite.detail)
    after = built(shop, found)
    assert operators(after, "Conv") > 1
    assert_same_outputs(proto, after)


def test_siamese_branches_are_joined() -> None:
    """By any family."""
    proto = head(((5, 5), (5, 5)))
    shop, found = hunted(proto)
    after = built(shop, found)
    assert operators(after, "Conv") == 1
    assert_same_outputs(proto, after)


@pytest.mark.usefixtures("canvases_only")
def test_heads_that_differ_in_their_weights_alone_share_a_rule() -> None:
    """One program, looked at once; both places are rewritten."""
    rng = np.random.default_rng(0)
    weights = {f"k{n}": rng.standard_normal((CHANNELS, CHANNELS, 3, 3)) for n in range(2)}
    shapes = {f"{n}{m}": [1, CHANNELS, *LEVELS[m]] for n in range(2) for m in range(2)}
    nodes = [helper.make_node("Conv", [f"x{k}", f"k{k[0]}"], [f"y{k}"], **WINDOW) for k in shapes]
    proto = model(nodes, {f"x{k}": s for k, s in shapes.items()}, weights, {f"y{k}": s for k, s in shapes.items()})
    shop, found = hunted(proto)
    assert len(found.trace) == 2
    assert len({step.rule for record in found.trace for step in record.steps}) == 1
    assert len({record.kind for record in found.trace}) == 1
    after = built(shop, found)
    assert operators(after, "Conv") == 2
    assert_same_outputs(proto, after)


@pytest.mark.usefixtures("canvases_only")
def test_bodies_have_mutants_of_their_own() -> None:
    shapes = [[1, CHANNELS, *size] for size in LEVELS[:2]]
    outs = [helper.make_tensor_value_info(f"c{k}", TensorProto.FLOAT, s) for k, s in enumerate(shapes)]
    convolved = [helper.make_node("Conv", [f"x{k}", "k"], [f"c{k}"], **WINDOW) for k in range(2)]
    rectified = [helper.make_node("Relu", [f"x{k}"], [f"c{k}"]) for k in range(2)]
    one, other = (helper.make_graph(nodes, "body", [], outs) for nodes in (convolved, rectified))
    fork = helper.make_node("If", ["c"], ["y0", "y1"], name="fork", then_branch=one, else_branch=other)
    weights = {"k": np.random.default_rng(0).standard_normal((CHANNELS, CHANNELS, 3, 3))}
    ports = [{f"{v}{k}": s for k, s in enumerate(shapes)} for v in "xy"]
    proto = model([fork], ports[0], weights, ports[1])
    proto.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    shop, found = hunted(proto)
    assert [record.where for record in found.trace] == ["fork/then_branch/"]
    after = built(shop, found)
    (body,) = [a.g for a in after.graph.node[0].attribute if a.name == "then_branch"]
    assert sum(n.op_type == "Conv" for n in body.node) == 1
    assert_same_outputs(proto, after)


@pytest.mark.usefixtures("canvases_only")
def test_an_open_batch_stays_open() -> None:
    """Levels of one input share its batch, whatever that will be; of inputs of their own nobody knows that."""
    window: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [helper.make_node("MaxPool", ["x"], ["x1"], **window)]
    nodes += [helper.make_node("Conv", [x, "k"], [y], **WINDOW) for x, y in (("x", "y0"), ("x1", "y1"))]
    weights = {"k": np.random.default_rng(0).standard_normal((CHANNELS, CHANNELS, 3, 3))}
    outputs = {"y0": ["n", CHANNELS, 6, 8], "y1": ["n", CHANNELS, 3, 4]}
    proto = model(nodes, {"x": ["n", CHANNELS, 6, 8]}, weights, outputs)
    shop, found = hunted(proto)
    after = built(shop, found)
    assert operators(after, "Conv") == 1
    for batch in (0, 1, 3):
        assert_same_outputs(proto, after, batch)
    assert not hunted(head(LEVELS[:2], batch="n"))[1].trace


@pytest.mark.parametrize(
    ("proto", "found", "tolerance"),
    [
        (head(LEVELS[:2], 2, dtype=np.float16), True, 2e-2),
        (head(LEVELS[:2], 2, weights_are_inputs=True), True, 1e-5),
        (head(LEVELS[:2], 2, between=("Sigmoid", "Tanh")), True, 1e-5),
        (head(LEVELS[:2], biases=2), False, 1e-5),
        (head(LEVELS[:2], batch=0), False, 1e-5),
    ],
    ids=["half precision", "weights are inputs", "functions that move zero", "unlike biases", "no images"],
)
@pytest.mark.usefixtures("canvases_only")
def test_heads_of_all_sorts(proto: onnx.ModelProto, found: bool, tolerance: float) -> None:
    shop, hunt = hunted(proto)
    assert bool(hunt.trace) is found
    assert_same_outputs(proto, built(shop, hunt), tolerance=tolerance)
