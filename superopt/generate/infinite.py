"""Rules among element functions that make a NaN of an infinite number, such as Relu(x) = LeakyRelu(x, alpha=0).

Masks and paddings are infinite in models that people have, and 0 times that is no number.
"""

from __future__ import annotations

import numpy as np

from superopt.generate.worth import HEAVY
from superopt.ops.evaluate import Unsupported
from superopt.ops.formula import Illegal
from superopt.ops.registry import Registry
from superopt.rewrite.rule import Rule
from superopt.verify.drawing import Skip
from superopt.verify.instances import instances

WANTED = 4
SUMS = (*HEAVY, "Reduce", "Norm", "Softmax", "Pool", "CumSum", "Sum")
"""Parts of the names of operators that add up: what an infinite term does to a sum is for the check to say."""


def makes_nan(rule: Rule, registry: Registry) -> bool:
    """Whether the left side has an answer for an infinite input, and the right side has none."""
    if any(part in call.op for call in rule.calls for part in SUMS):
        return False
    return any(
        _makes_nan(rule, registry, given.name, sign * np.inf)
        for given in rule.given
        if given.kind == "tensor"
        for sign in (1, -1)
    )


def _makes_nan(rule: Rule, registry: Registry, name: str, poison: float) -> bool:
    with np.errstate(all="ignore"):
        for instance in instances(rule, registry, wanted=WANTED, seed=3, poisoned=name, poison=poison):
            try:
                right = instance.right()
            except (Illegal, Skip, Unsupported):
                continue
            for result in rule.results:
                before, after = instance.value(instance.left[result]), instance.value(right[result])
                if before.shape == after.shape and np.any(np.isnan(after) & ~np.isnan(before)):
                    return True
    return False
