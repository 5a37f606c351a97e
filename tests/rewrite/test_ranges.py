# pyright: basic
"""No rule trades a computation that is safe for one that overflows, or that takes the difference of large numbers.

A proof is about real numbers, for which e^x of a large x is just another number. Here inputs are large, small or far
from zero, and what was finite and exact must stay so.
"""

from __future__ import annotations

import numpy as np
import pytest

from superopt.rewrite.rule import Rule
from superopt.runtime.library import errors
from tests.rewrite.instances import Instance, instances
from tests.rewrite.taking import REGISTRY, SHIPPED, opened, rules, run
from tests.rewrite.writer import Spelling

pytestmark = pytest.mark.ort

RANGES = ((60.0, 0.0), (1.0, 100.0), (1.0, -100.0), (1e-6, 0.0), (1e4, 0.0))
"""Inputs times the first, plus the second."""

LEFT_IS_WORSE = {
    "exp-of-difference": "e^x / e^z is 0 / 0 where both are small",
    "softmax-by-exp": "the sum of exponentials overflows, and loses digits before",
}
"""Rules whose right side is the better one."""

DATA_ONLY = Spelling(weights=0.0)
PRECISION = 1e-3


def moved(instance: Instance, scale: float, shift: float) -> dict[str, np.ndarray]:
    return {k: v if v.dtype == np.bool_ else (v * scale + shift).astype(v.dtype) for k, v in instance.feeds.items()}


def exact(data: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    try:
        found = run(data, feeds, optimized=False)
    except errors():
        return None
    return found if all(np.isfinite(a).all() for a in found) else None


@pytest.mark.thorough
@pytest.mark.parametrize("rule", [r for r in SHIPPED if not r.finite], ids=lambda rule: rule.name)
def test_what_is_safe_stays_safe(rule: Rule) -> None:
    for instance in instances(rule, REGISTRY, 23, DATA_ONLY, seed=3):
        start = opened(instance.data, shapes=instance.shapes)
        found = start.matches(start.piece, rules(rule.name))
        if not found or rule.name in LEFT_IS_WORSE:
            continue
        data = start.exported(start.take(start.piece, found[0]))
        for scale, shift in RANGES:
            feeds = moved(instance, scale, shift)
            before = exact(instance.data, feeds)
            if before is None or exact(data, instance.feeds) is None:
                continue
            after = exact(data, feeds)
            assert after is not None, (scale, shift)
            for a, b in zip(before, after, strict=True):
                largest = np.max(np.abs(a), initial=1e-30)
                assert np.max(np.abs(a - b), initial=0.0) <= PRECISION * largest, (scale, shift)
