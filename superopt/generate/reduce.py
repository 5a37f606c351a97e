"""A set of rules without those that the others do as well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from superopt.generate.known import Known
from superopt.generate.writing import Finding
from superopt.ops.registry import Registry


def reduced(findings: Sequence[Finding], registry: Registry, known: Iterable[Finding] = ()) -> list[Finding]:
    """Those that no other rule leads to in one step; `known` are others that stay in any case.

    A scene finds a law as narrow as its inputs are, a later one may find it wider. The first found are asked about
    first, so of two that say the same the later one stays. Macros stay: others lead there too, but uphill.
    """
    book = Known(registry, [f.rule for f in known])
    kept = len(book)
    for finding in findings:
        book.add(finding.rule)
    left: list[Finding] = []
    for k, finding in enumerate(findings):
        if finding.macro or not book.leads(finding.rule, without=kept + k):
            left.append(finding)
        else:
            book.remove(kept + k)
    return left
