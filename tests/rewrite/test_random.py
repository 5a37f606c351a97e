# pyright: basic
"""Random models: rewrites, alone and one after another, keep the answers at full optimization."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from superopt.ir.onnx import parse
from superopt.runtime.library import errors
from tests.graphs import RANDOM, Case, cases, run
from tests.rewrite.taking import REGISTRY, SHIPPED, Rules, difference, opened, wander

pytestmark = pytest.mark.ort

STEPS = Rules([r for r in SHIPPED if not r.finite and not r.name.endswith("commute")], REGISTRY)
REAL = {p.rule.name for p in STEPS.patterns.values() if any(n.operator.elements == "real" for n in p.nodes)}


def limits(examples: int) -> settings:
    checks = [HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.filter_too_much]
    return settings(max_examples=examples, deadline=None, suppress_health_check=checks, derandomize=True)


def check(case: Case, seed: int) -> None:
    try:
        expected = run(case.model, case.feeds)
    except errors():
        assume(False)
    start = opened(case.model)
    names, piece = wander(start, np.random.default_rng(seed), 4, STEPS)
    data = start.exported(piece)
    assert not difference(expected, run(data, case.feeds)), names
    assert draws(data) == draws(case.model)


def draws(data: bytes) -> int:
    return sum(node.op == RANDOM for node in parse(data).graph.all_nodes())


def nodes(data: bytes) -> Counter[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    graph = onnx.ModelProto.FromString(data).graph
    return Counter((n.op_type, tuple(n.input), tuple(n.output)) for n in graph.node)


@limits(60)
@given(cases(max_steps=20), st.integers(0, 1 << 20))
def test_rewrites_keep_the_answers(case: Case, seed: int) -> None:
    check(case, seed)


@pytest.mark.thorough
@limits(2000)
@given(cases(max_steps=20), st.integers(0, 1 << 20))
def test_many_rewrites_keep_the_answers(case: Case, seed: int) -> None:
    check(case, seed)


@limits(40)
@given(cases(max_steps=16))
def test_rules_about_real_numbers_are_for_floating_point(case: Case) -> None:
    start = opened(case.model)
    for match, _ in start.matches(start.piece, STEPS):
        assert match.dtype.is_float or match.pattern.rule.name not in REAL


@limits(40)
@given(cases(max_steps=16))
def test_nothing_to_rewrite_is_the_identity(case: Case) -> None:
    """But for constants that nobody reads."""
    start = opened(case.model)
    lost = nodes(case.model)
    lost.subtract(nodes(start.exported(start.piece)))
    read = {v.producer for node in start.piece.nodes for v in node.operands} | {v.producer for v in start.piece.results}
    weights = {name for node in start.piece.own if node not in read for name in start.model.graph.labels[node].outputs}
    assert all(count == 0 or set(outputs) <= weights for (_, _, outputs), count in lost.items())
