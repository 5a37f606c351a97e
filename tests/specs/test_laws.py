"""Laws for every registered operator; adding a definition adds its tests."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import specs
from superopt.errors import CannotRun
from superopt.ops.domains import PRIME, Field, Ordered, Reals
from superopt.ops.evaluate import Unsupported, evaluate, sized
from superopt.ops.formula import Illegal, NotCovered, Tensor, constant
from superopt.ops.registry import Draw, Operator, Values
from superopt.runtime.target import cuda_state
from tests.specs import one_node

DRAWS = 200
OPERATORS = list(specs.load())
CUDA_ONLY = [o for o in OPERATORS if o.runs_on == "cuda"]


def name(operator: Operator) -> str:
    return f"{operator.kind}-{operator.since}"


def placed(operator: Operator) -> Any:
    """An operator without a CPU kernel needs a device for its comparison."""
    return pytest.param(operator, marks=pytest.mark.gpu) if operator.runs_on == "cuda" else operator


def draws(operator: Operator, count: int) -> list[tuple[Draw, np.random.Generator]]:
    """Draws that the formula finds legal; most of a definition's own draws must be."""
    found: list[tuple[Draw, np.random.Generator]] = []
    for attempt in range(4 * count):
        rng = np.random.default_rng([zlib.crc32(operator.kind.encode()), operator.since, attempt])
        assert operator.draw is not None, "a shipped definition brings draws for its tests"
        draw = operator.draw(rng)
        try:
            apply(operator, draw)
        except (Illegal, NotCovered):
            continue
        found.append((draw, rng))
        if len(found) == count:
            return found
    raise AssertionError(f"{operator.kind}: only {len(found)} of {4 * count} draws are legal")


def apply(operator: Operator, draw: Draw) -> tuple[Tensor, ...]:
    inputs = [
        None if s is None else constant(draw.known[k], s) if k in draw.known else sized(s, f"x{k}")
        for k, s in enumerate(draw.shapes)
    ]
    return operator.apply(inputs, draw.arguments, draw.outputs, draw.types)


def values(draw: Draw, rng: np.random.Generator, ordinary: Values) -> list[Any]:
    return [
        None if s is None else np.full(s, draw.known[k]) if k in draw.known
        else np.asarray((draw.values_of(k) or ordinary)(rng, s))
        for k, s in enumerate(draw.shapes)
    ]  # fmt: skip


def floats(draw: Draw, rng: np.random.Generator) -> list[Any]:
    drawn = values(draw, rng, lambda rng, shape: rng.standard_normal(shape))
    return [v.astype(np.float32) if v is not None and v.dtype == np.float64 else v for v in drawn]


@pytest.mark.ort
@pytest.mark.parametrize("operator", list(map(placed, OPERATORS)), ids=name)
def test_evaluation_equals_onnxruntime(operator: Operator) -> None:
    if operator.runs_on == "cuda" and not (cuda := cuda_state()).works:
        pytest.skip(f"{operator.kind} has a kernel for CUDA alone: {cuda.reason}")
    refusals: list[str] = []
    for draw, rng in draws(operator, DRAWS):
        operands = floats(draw, rng)
        results = apply(operator, draw)
        try:
            found = one_node.run(operator, operands, dict(draw.arguments), len(results))
        except CannotRun as error:
            refusals.append(f"{draw}: {error}")
            continue
        inputs = {f"x{k}": v.astype(np.float64) for k, v in enumerate(operands) if v is not None}
        for result, expected in zip(results, found, strict=True):
            assert tuple(result.shape) == expected.shape, draw
            computed = evaluate(result, inputs, Reals())
            assert computed.shape == expected.shape
            np.testing.assert_allclose(computed, expected, rtol=2e-4, atol=2e-5, err_msg=str(draw))
    assert len(refusals) < DRAWS // 10, f"onnxruntime refuses legal draws: {refusals[:3]}"


@pytest.mark.ort
@pytest.mark.parametrize("operator", CUDA_ONLY, ids=name)
def test_the_cpu_has_no_kernel_where_a_definition_says_so(operator: Operator) -> None:
    draw, rng = draws(operator, 1)[0]
    with pytest.raises(CannotRun, match="Could not find an implementation"):
        one_node.run(operator, floats(draw, rng), dict(draw.arguments), draw.outputs, "cpu")


@pytest.mark.unit
@pytest.mark.parametrize("operator", OPERATORS, ids=name)
def test_domains_agree(operator: Operator) -> None:
    """On integers, exact arithmetics agree with floating point wherever they apply."""
    for draw, rng in draws(operator, 25):
        drawn = values(draw, rng, lambda rng, shape: rng.integers(-4, 5, shape))
        integers = {f"x{k}": v for k, v in enumerate(drawn) if v is not None and k not in draw.known}
        if any(v.dtype.kind == "f" and np.any(v % 1) for v in integers.values()):
            continue
        for result in apply(operator, draw):
            reals = evaluate(result, {n: v.astype(np.float64) for n, v in integers.items()}, Reals())
            try:
                ordered = evaluate(result, {n: v.astype(np.int64) for n, v in integers.items()}, Ordered())
                np.testing.assert_array_equal(ordered, reals, err_msg=str(draw))
                field = evaluate(result, {n: v.astype(np.int64) % PRIME for n, v in integers.items()}, Field())
                np.testing.assert_array_equal(field, ordered % PRIME, err_msg=str(draw))
            except Unsupported:
                continue
