"""Small numbers that show a rule wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from superopt.ops.evaluate import Unsupported
from superopt.ops.formula import Illegal, NotCovered, Tensor
from superopt.ops.registry import Registry
from superopt.rewrite.program import Impossible
from superopt.rewrite.rule import Call, Rule
from superopt.verify.drawing import Instance, Skip
from superopt.verify.instances import instances

FEW, MANY = 6, 60
"""Instances tried for each number of axes: before a proof, and when it has failed."""
LEVEL = 40
"""Instances with elements that are all the same, at least: what rounding makes of them differs once in a while."""
TOLERANCE = 1e-7
SMALLER = 1 / 64


def find_counterexample(rule: Rule, registry: Registry, *, wanted: int = MANY, seed: int = 0) -> str | None:
    """Sizes, attributes and values at which the sides differ, in words; None where none was found."""
    return next((found for found in compared(rule, registry, wanted=wanted, seed=seed) if found is not None), None)


def compared(
    rule: Rule, registry: Registry, *, wanted: int, seed: int = 0, nearby: bool = False
) -> Iterator[str | None]:
    """For each instance that both sides can be computed for: where they differ, in words, or None."""
    for instance in _tried(rule, registry, wanted, seed, nearby):
        try:
            right = instance.right()
        except Illegal as why:
            yield f"at {instance.sizes} the left side is legal and the right side is not: {why}"
            continue
        except (Skip, Unsupported, NotCovered, ZeroDivisionError):
            continue
        yield _differing(instance, right)


def _differing(instance: Instance, right: dict[str, Tensor]) -> str | None:
    for name in instance.program.rule.results:
        found = difference(instance, instance.left[name], right[name])
        if found is not None and not _overflowed(instance, right, name):
            return f"at {instance.sizes}: {name}{found}"
    return None


def _tried(rule: Rule, registry: Registry, wanted: int, seed: int, nearby: bool) -> Iterator[Instance]:
    """Numbers by which something is divided are also tried as 0, of which a proof about real numbers says nothing: as
    a normalization's epsilon it leaves what rounding makes of elements that are all the same."""
    yield from instances(rule, registry, wanted=wanted, seed=seed, nearby=nearby)
    if any(given.kind == "real" for given in rule.given):
        yield from instances(rule, registry, wanted=wanted, seed=seed, reals=0.0, nearby=nearby)
        if any(_takes_means(call) for call in rule.calls):
            level = max(wanted, LEVEL)
            yield from instances(rule, registry, wanted=level, seed=seed, reals=0.0, level=True, nearby=nearby)


def _takes_means(call: Call) -> bool:
    """Whether it may compute a mean: only there do equal elements leave nothing to divide by."""
    return any(part in call.op for part in ("Norm", "Reduce", "AveragePool"))


def _overflowed(instance: Instance, right: dict[str, Tensor], name: str) -> bool:
    """Whether only one side is a number, and both are once the values are smaller: e^x of something large."""
    a, b = instance.value(instance.left[name]), instance.value(right[name])
    if a.shape != b.shape or not np.any(np.isfinite(a) != np.isfinite(b)):
        return False
    try:
        smaller = instance.scaled(SMALLER)
        again = smaller.right()
        return difference(smaller, smaller.left[name], again[name]) is None
    except (Illegal, Skip, Unsupported, Impossible, NotCovered):
        return False


def difference(instance: Instance, left: Tensor, right: Tensor) -> str | None:
    """Where neither side is a number (a division by zero), they do not differ."""
    if tuple(left.shape) != tuple(right.shape):
        return f" has shape {list(left.shape)} on the left and {list(right.shape)} on the right"
    a, b = instance.value(left), instance.value(right)
    scale = 1.0 + max(float(np.max(np.abs(x[np.isfinite(x)]), initial=0.0)) for x in (a, b))
    with np.errstate(invalid="ignore"):
        same = (np.abs(a - b) <= TOLERANCE * scale) | (~np.isfinite(a) & ~np.isfinite(b))
    if np.all(same):
        return None
    place = tuple(int(k) for k in np.argwhere(~same)[0])
    return f"{list(place)} is {a[place]:g} on the left and {b[place]:g} on the right"
