"""A set of rules without those that the others do as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from superopt.generate.idle import is_idle
from superopt.generate.infinite import makes_nan
from superopt.generate.known import Known
from superopt.generate.writing import Finding
from superopt.ops.registry import Registry
from superopt.rewrite.pattern import compile_pattern
from superopt.rewrite.rule import Rule


def reduced(findings: Sequence[Finding], registry: Registry) -> list[Finding]:
    """Those that no other rule leads to in one step."""
    needless = set(needless_rules([f.rule for f in findings], [False] * len(findings), registry))
    return [finding for k, finding in enumerate(findings) if k not in needless]


def is_found(rule: Rule, registry: Registry) -> bool:
    """Whether the optimizer's matcher ever finds a rule in its own left side. It does not where a condition is taken
    for a number: scenes know sizes, the matcher knows types. Rules whose results share nothing are never looked for."""
    return not compile_pattern(rule, registry).roots or Known(registry, [rule]).ever_leads(rule)


def needless_rules(
    rules: Sequence[Rule], kept: Sequence[bool], registry: Registry, *, idle: bool = False
) -> Iterator[int]:
    """Numbers of the rules that the others do as well, of those that are never found, and of `idle` ones and those
    that make a NaN of an infinite number, if asked.

    A scene finds a law as narrow as its inputs are, a later one may find it wider. The first found are asked about
    first, so of two that say the same the later one stays. Those `kept` stay;
    macros need not, as there is no hill within one step.
    """
    book = Known(registry, rules)
    for k, rule in enumerate(rules):
        unfit = idle and (is_idle(rule) or makes_nan(rule, registry))
        if not kept[k] and (unfit or book.leads(rule, without=k) or not is_found(rule, registry)):
            book.remove(k)
            yield k
