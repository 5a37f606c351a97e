"""The rewritten model without one of the operators that rewrites brought in, in all its regions alike.

A region by itself finds its weights in the cache, and its time is known to a percent or two. So an operator that pays
there may cost in the model, a little in every layer; or the layers disagree for no reason. Whole models tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from superopt.ir.graph import Graph
from superopt.rewrite.rule import Call, Rule, calls_of
from superopt.search.trace import Traced

MOST = 4
"""Operators that are left out in turn: those that there are most of."""


def brought_in(before: Graph, after: Graph) -> list[str]:
    """Operators that only the later graph has, the most frequent first."""
    known = {node.kind for node in before.all_nodes()}
    count = Counter(node.kind for node in after.all_nodes())
    return [kind for kind, _ in count.most_common() if kind not in known]


def leaving_out(trace: Sequence[Traced], operator: str, rules: Mapping[str, Rule]) -> list[Traced]:
    """The trace without the steps that bring the operator in."""
    return without(trace, {name for name, rule in rules.items() if brings_in(rule, operator)})


def without(trace: Sequence[Traced], guilty: Collection[str]) -> list[Traced]:
    """The trace without the steps of these rules. A region that loses steps is another one, which nobody has timed;
    equal ones still share a number."""
    fresh = 1 + max((record.kind for record in trace), default=0)
    numbers: dict[int, int] = {}
    found: list[Traced] = []
    for record in trace:
        steps = tuple(step for step in record.steps if step.rule not in guilty)
        if len(steps) < len(record.steps):
            kind = numbers.setdefault(record.kind, fresh + len(numbers))
            record = replace(record, steps=steps, kind=kind)
        if steps:
            found.append(record)
    return found


def brings_in(rule: Rule, operator: str) -> bool:
    return _has(calls_of(rule.right), operator) and not is_about(rule, operator)


def is_about(rule: Rule, operator: str) -> bool:
    return _has(calls_of(rule.left), operator)


def _has(calls: Sequence[Call], operator: str) -> bool:
    return any((f"{c.domain}::{c.op}" if c.domain else c.op) == operator for c in calls)
