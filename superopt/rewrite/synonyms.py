"""Operators under another name: where a left side has an Add, a Sum of two will do.

The two mean the same (tests/rewrite/test_synonyms.py has it proved), but onnxruntime treats them differently: it makes
one Gemm of a MatMul and an Add, and leaves a Sum alone. So both occur, and no rule has to be written twice.
"""

from __future__ import annotations

from superopt.ir.graph import Node


def names_of(node: Node) -> tuple[tuple[str, str], ...]:
    """Domain and operator that a node may stand for in a left side, its own first."""
    own = (node.domain, node.op)
    return (own, ("", "Add")) if own == ("", "Sum") and len(node.inputs) == 2 else (own,)


def stands_for(node: Node, op: str, domain: str) -> bool:
    return (domain, op) in names_of(node)
