# pyright: basic
"""Random models: passes keep the answers, whatever they are limited to, and have nothing left to do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from superopt.ir.graph import Graph
from superopt.ir.onnx import encode, parse
from superopt.normalize import normalize
from superopt.normalize.journal import constant_bytes
from superopt.runtime.library import errors
from tests.graphs import RANDOM, Case, assert_same, cases, run
from tests.normalize.models import nodes_of

pytestmark = pytest.mark.ort

checked = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
    derandomize=True,
)


def answers(case: Case):
    try:
        return run(case.model, case.feeds)
    except errors():
        assume(False)


def draws(graph: Graph) -> int:
    return sum(node.op == RANDOM for node in graph.all_nodes())


@st.composite
def decided(draw) -> tuple[Case, bytes]:
    """A case in which some conditions are constants, and the same with nothing of the branches that are not taken."""
    case = draw(cases(max_steps=20))
    proto, slim = onnx.load_from_string(case.model), onnx.load_from_string(case.model)
    for graph in (proto.graph, slim.graph):
        for truth in (0, 1):
            value = numpy_helper.from_array(np.array(bool(truth)))
            graph.node.insert(0, helper.make_node("Constant", [], [f"truth{truth}"], value=value))
    pairs = list(zip(nodes_of(proto.graph), nodes_of(slim.graph), strict=True))
    for node, other in [pair for pair in pairs if pair[0].op_type == "If"]:
        truth = draw(st.sampled_from((None, 0, 1)))
        if truth is None:
            continue
        node.input[0] = f"truth{truth}"
        for attribute in other.attribute:
            if attribute.name == ("else_branch" if truth else "then_branch"):
                del attribute.g.node[:]
    return replace(case, model=proto.SerializeToString()), slim.SerializeToString()


@checked
@given(cases())
def test_import_and_export_are_the_identity(case: Case) -> None:
    model = parse(case.model)
    assert encode(model, model.graph) == onnx.load_from_string(case.model)


@checked
@given(cases(max_steps=20))
def test_passes_keep_the_answers(case: Case) -> None:
    expected = answers(case)
    model = parse(case.model)
    result = normalize(model)
    after = encode(model, result.graph).SerializeToString()
    assert_same(expected, run(after, case.feeds))
    assert draws(result.graph) == draws(model.graph)
    again = normalize(parse(after))
    assert again.rewrites == ()


@checked
@given(decided())
def test_branches_that_are_taken(pair: tuple[Case, bytes]) -> None:
    case, slim = pair
    expected = answers(case)
    model = parse(case.model)
    result = normalize(model)
    after = encode(model, result.graph).SerializeToString()
    assert_same(expected, run(after, case.feeds))
    taken = [n for n in nodes_of(onnx.load_from_string(slim).graph) if n.op_type == RANDOM]
    assert draws(result.graph) == len(taken)
    assert normalize(parse(after)).rewrites == ()
    for node in nodes_of(onnx.load_from_string(after).graph):
        assert node.op_type != "If" or not node.input[0].startswith("truth")


@checked
@given(
    st.one_of(cases(max_steps=20), decided().map(lambda pair: pair[0])), st.sampled_from((0, 8, 64)), st.integers(0, 20)
)
def test_within_their_limits(case: Case, cap: int, limit: int) -> None:
    expected = answers(case)
    model = parse(case.model)
    full = normalize(model, growth_cap=cap)
    cut = normalize(model, growth_cap=cap, limit=limit)
    assert cut.rewrites == full.rewrites[:limit]
    for result in (full, cut):
        assert constant_bytes(result.graph) - constant_bytes(model.graph) <= cap
        assert_same(expected, run(encode(model, result.graph).SerializeToString(), case.feeds))
    pairs = [(r.name, r.place) for r in full.rewrites[limit % 3 :: 3]]
    without = normalize(model, growth_cap=cap, forbid=pairs)
    assert not set(pairs) & {(r.name, r.place) for r in without.rewrites}
    assert_same(expected, run(encode(model, without.graph).SerializeToString(), case.feeds))
