# pyright: basic
"""Near misses: models that are almost a rule's left side, or that rules were at before. Answers stay what they were."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest

from superopt.errors import SuperoptError
from superopt.rewrite.weights import CannotCombine
from superopt.runtime.library import errors
from tests.rewrite.instances import Instance, instances, values
from tests.rewrite.nearly import CHANGES, feeds_for
from tests.rewrite.taking import REGISTRY, SHIPPED, Opened, Rules, difference, opened, ran, run, wander
from tests.rewrite.writer import DYNAMIC, EXPORTED, PLAIN, Spelling

pytestmark = pytest.mark.ort

OPSETS = (9, 11, 13, 17, 18, 21, 23)
STEPS = Rules([r for r in SHIPPED if not r.finite and not r.name.endswith("commute")], REGISTRY)
"""Swapping operands leads nowhere."""


def drawn(rng: np.random.Generator, spellings: tuple[Spelling, ...] = (PLAIN, EXPORTED, DYNAMIC)) -> Instance:
    """An instance of some rule at some opset that is written in some way."""
    while True:
        rule = SHIPPED[int(rng.integers(len(SHIPPED)))]
        opset, spelling = int(rng.choice(OPSETS)), spellings[int(rng.integers(len(spellings)))]
        seed = int(rng.integers(1 << 30))
        found = next(instances(rule, REGISTRY, opset, spelling, seed=seed, every=False), None)
        if found is not None:
            return found


def answers(data: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """None where onnxruntime does not run the model, or what it computes are no numbers."""
    try:
        found = run(data, feeds, optimized=False)
    except errors():
        return None
    return found if all(np.isfinite(a.astype(np.float64)).all() for a in found) else None


def miscomputed(data: bytes) -> bool:
    """Whether a model has a float16 convolution in groups: onnxruntime 1.31.1 answers those wrongly on ARM's CPUs."""
    graph = onnx.load_from_string(data).graph
    half = any(v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for v in graph.input)
    groups = [a.i for node in graph.node if node.op_type == "Conv" for a in node.attribute if a.name == "group"]
    return half and any(group > 1 for group in groups)


def assert_same(
    start: Opened, feeds: dict[str, np.ndarray], expected: list[np.ndarray], rng: np.random.Generator
) -> int:
    """Up to four of the matches, each taken alone; how many were."""
    found = start.matches(start.piece, STEPS)
    taken = 0
    for k in rng.permutation(len(found))[:4]:
        match = found[int(k)]
        try:
            data = start.exported(start.take(start.piece, match))
        except CannotCombine:
            continue
        after = None if miscomputed(data) else ran(data, feeds)
        if after is not None:
            assert not difference(expected, after), match[0].pattern.rule.name
            taken += 1
    return taken


def near_misses(seed: int, count: int, spellings: tuple[Spelling, ...]) -> int:
    """How many rewrites of changed models were made and found right."""
    rng = np.random.default_rng(seed)
    taken = 0
    for _ in range(count):
        instance = drawn(rng, spellings)
        model = onnx.ModelProto()
        model.CopyFrom(instance.model)
        for _ in range(int(rng.choice((1, 1, 2)))):
            CHANGES[int(rng.integers(len(CHANGES)))](model, rng)
        feeds = feeds_for(model, instance.feeds, rng)
        expected = answers(model.SerializeToString(), feeds)
        if expected is None:
            continue
        try:
            start = opened(model.SerializeToString())
        except SuperoptError:  # onnxruntime is more lenient than we are
            continue
        taken += assert_same(start, feeds, expected, rng)
    return taken


@pytest.mark.parametrize("seed", range(8))
def test_near_misses_keep_their_answers(seed: int) -> None:
    assert near_misses(seed, 12, (PLAIN, EXPORTED, DYNAMIC)) > 4


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_near_misses_keep_their_answers(seed: int) -> None:
    assert near_misses(seed, 100, (PLAIN, EXPORTED, DYNAMIC)) > 40


OTHER_TYPES = tuple(replace(s, dtype=d) for s in (PLAIN, EXPORTED) for d in ("float64", "float16", "int32", "int64"))


@pytest.mark.parametrize("seed", range(20, 24))
def test_other_element_types_keep_their_answers(seed: int) -> None:
    near_misses(seed, 14, OTHER_TYPES)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(200, 220))
def test_many_of_other_element_types_keep_their_answers(seed: int) -> None:
    near_misses(seed, 100, OTHER_TYPES)


def ways(seed: int, count: int) -> int:
    """Random ways of up to six rewrites from instances; how many rewrites."""
    rng = np.random.default_rng(seed)
    taken = 0
    for _ in range(count):
        instance = drawn(rng)
        expected = answers(instance.data, instance.feeds)
        if expected is None:
            continue
        start = opened(instance.data)
        names, piece = wander(start, rng, 6, STEPS)
        try:
            data = start.exported(piece)
        except CannotCombine:
            continue
        after = ran(data, instance.feeds)
        if after is not None:
            assert not difference(expected, after), f"{instance.rule.name}: {names}"
            taken += len(names)
    return taken


@pytest.mark.parametrize("seed", range(40, 44))
def test_one_rewrite_after_another(seed: int) -> None:
    assert ways(seed, 15) > 10


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(300, 330))
def test_many_rewrites_one_after_another(seed: int) -> None:
    assert ways(seed, 150) > 100


def resized(seed: int, count: int) -> int:
    """Models with dims that have a name only, rewritten once and run at several sizes; how many runs."""
    rng = np.random.default_rng(seed)
    runs = 0
    for _ in range(count):
        instance = drawn(rng, tuple(replace(s, symbolic=0.5, weights=1.0) for s in (PLAIN, EXPORTED)))
        start = opened(instance.data)
        names, piece = wander(start, rng, 2, STEPS)
        try:
            data = start.exported(piece) if names else b""
        except CannotCombine:
            continue
        for _ in range(3 if names else 0):
            feeds = at_other_sizes(instance, rng)
            expected = answers(instance.data, feeds)
            if expected is None:
                continue
            after = ran(data, feeds)
            if after is not None:
                assert not difference(expected, after), f"{instance.rule.name}: {names}"
                runs += 1
    return runs


def at_other_sizes(instance: Instance, rng: np.random.Generator) -> dict[str, np.ndarray]:
    feeds: dict[str, np.ndarray] = {}
    for value in instance.model.graph.input:
        dims = value.type.tensor_type.shape.dim
        shape = tuple(int(rng.choice((1, 2, 3, 6))) if d.dim_param else d.dim_value for d in dims)
        feeds[value.name] = values(rng, shape, instance.feeds[value.name].dtype, positive=True)
    return feeds


@pytest.mark.parametrize("seed", range(60, 64))
def test_a_rewrite_holds_at_all_sizes(seed: int) -> None:
    assert resized(seed, 12) > 3


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(400, 420))
def test_many_rewrites_hold_at_all_sizes(seed: int) -> None:
    assert resized(seed, 150) > 50
