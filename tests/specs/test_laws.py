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
from superopt.ops.formula import Illegal, NotCovered, Tensor
from superopt.ops.registry import Draw, Operator
from tests.specs import one_node

DRAWS = 200
OPERATORS = list(specs.load())


def draws(operator: Operator, count: int) -> list[tuple[Draw, np.random.Generator]]:
    """Draws that the formula finds legal; most of a definition's own draws must be."""
    found: list[tuple[Draw, np.random.Generator]] = []
    for attempt in range(4 * count):
        rng = np.random.default_rng([zlib.crc32(operator.kind.encode()), operator.since, attempt])
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
    inputs = [None if s is None else sized(s, f"x{k}") for k, s in enumerate(draw.shapes)]
    return operator.apply(inputs, draw.arguments, draw.outputs)


def values(draw: Draw, rng: np.random.Generator) -> list[Any]:
    make = draw.values or (lambda rng, shape: rng.standard_normal(shape))
    return [None if s is None else np.asarray(make(rng, s)) for s in draw.shapes]


@pytest.mark.ort
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda o: f"{o.kind}-{o.since}")
def test_evaluation_equals_onnxruntime(operator: Operator) -> None:
    refusals: list[str] = []
    for draw, rng in draws(operator, DRAWS):
        operands = [
            None if v is None else v.astype(np.float32) if v.dtype == np.float64 else v for v in values(draw, rng)
        ]
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


@pytest.mark.unit
@pytest.mark.parametrize("operator", OPERATORS, ids=lambda o: f"{o.kind}-{o.since}")
def test_domains_agree(operator: Operator) -> None:
    """On integers, exact arithmetics agree with floating point wherever they apply."""
    for draw, rng in draws(operator, 25):
        integers = {
            f"x{k}": rng.integers(-4, 5, s) if draw.values is None else np.asarray(draw.values(rng, s))
            for k, s in enumerate(draw.shapes)
            if s is not None
        }
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
