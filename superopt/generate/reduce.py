"""A set of rules without those that the others do as well."""

from __future__ import annotations

from collections.abc import Sequence

from superopt.generate.known import Known
from superopt.generate.writing import Finding
from superopt.ops.registry import Registry


def reduced(findings: Sequence[Finding], registry: Registry) -> list[Finding]:
    """Those that no other rule leads to in one step.

    A scene finds a law as narrow as its inputs are, a later one may find it wider. The first found are asked about
    first, so of two that say the same the later one stays. Macros stay: others lead there too, but uphill.
    """
    book = Known(registry, [finding.rule for finding in findings])
    left: list[Finding] = []
    for k, finding in enumerate(findings):
        if finding.macro or not book.leads(finding.rule, without=k):
            left.append(finding)
        else:
            book.remove(k)
    return left
