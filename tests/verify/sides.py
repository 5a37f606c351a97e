"""Short ways to build programs for the prover's tests."""

from __future__ import annotations

from typing import Any

import specs
from superopt.ops.element import Access
from superopt.ops.formula import Tensor
from superopt.ops.index import Index
from superopt.rewrite.rule import Rule
from superopt.rewrite.text import parse_rules
from superopt.verify.prove import Verdict, prove

REGISTRY = specs.load()


def given(name: str, *shape: Index) -> Tensor:
    return Tensor(shape, lambda *i: Access(name, i))


def op(kind: str, *operands: Tensor, outputs: int = 1, **arguments: Any) -> Tensor:
    domain, _, name = kind.rpartition("::")
    operator = REGISTRY.find(name, domain)
    assert operator is not None
    return operator.apply(list(operands), arguments, outputs)[0]


def rule(body: str) -> Rule:
    (found,) = parse_rules("rule the-rule\n" + "\n".join(f"  {line.strip()}" for line in body.strip().split("\n")))
    return found


def verdict(body: str, seconds: float = 60.0) -> Verdict:
    return prove(rule(body), REGISTRY, seconds=seconds)
