"""NaN that a rule loses: its left side passes it on, and its right side answers something else."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from superopt.ops.evaluate import Unsupported
from superopt.ops.formula import Illegal
from superopt.ops.registry import Registry
from superopt.rewrite.rule import Call, Operand, Rule, Step, calls_of
from superopt.verify.counterexample import FEW, MANY, difference
from superopt.verify.drawing import Skip
from superopt.verify.instances import instances


def find_lost_nan(rule: Rule, registry: Registry, *, wanted: int = FEW) -> str | None:
    """The name of an input whose NaN the left side always passes on and the right side never does; None where there is
    none."""
    for given in rule.given:
        if given.kind != "tensor" or not passes_nan_on(rule.left, given.name, rule.results):
            continue
        seen = kept = 0
        is_hidden = not passes_nan_on(rule.right, given.name, rule.results)
        for instance in instances(rule, registry, wanted=wanted, poisoned=given.name):
            try:
                right = instance.right()
            except (Illegal, Skip, Unsupported):
                continue
            sides = [any(np.isnan(instance.value(v[n])).any() for n in rule.results) for v in (instance.left, right)]
            seen += sides[0]
            kept += sides[0] and sides[1] and not is_hidden
            if kept:
                break
        if seen and not kept:
            return given.name
    return None


HIDING = {"Clip": (1, 2), "ThresholdedRelu": (0,), "Shrink": (0,)}
"""Operands whose NaN onnxruntime's kernels do not pass on, though the formula would."""


def passes_nan_on(steps: Iterable[Step], name: str, results: Iterable[str]) -> bool:
    """Whether a NaN in the input gets to a result by operands that do not hide it."""
    shown = {name}

    def shows(operand: Operand) -> bool:
        if isinstance(operand, Call):
            hidden = HIDING.get(operand.op, ())
            return any(shows(o) for k, o in enumerate(operand.operands) if k not in hidden)
        return isinstance(operand, str) and operand in shown

    for step in steps:
        if shows(step.value):
            shown.update(step.targets)
    return not shown.isdisjoint(results)


def find_lost_guard(rule: Rule, registry: Registry, *, wanted: int = MANY) -> str | None:
    """Where a left side that asks for NaN answers one, or an infinite number, otherwise than the right side; None where
    that is nowhere."""
    if not any(call.op == "IsNaN" for call in calls_of(rule.left)):
        return None
    for given in rule.given:
        for poison in (np.nan, -np.inf) if given.kind == "tensor" else ():
            for instance in instances(rule, registry, wanted=wanted, poisoned=given.name, poison=poison):
                try:
                    right = instance.right()
                except (Illegal, Skip, Unsupported):
                    continue
                for name in rule.results:
                    if difference(instance, instance.left[name], right[name]) is not None:
                        return f"a {poison:g} in {given.name} is guarded against on the left and not on the right"
    return None
