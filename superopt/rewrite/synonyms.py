"""Operators under another name: where a left side has an Add, a Sum of two will do.

The two mean the same (tests/rewrite/test_synonyms.py has it proved), but onnxruntime treats them differently: it makes
one Gemm of a MatMul and an Add, and leaves a Sum alone. So both occur, and no rule has to be written twice.
"""

from __future__ import annotations

from superopt.ir.graph import Node


def names_of(node: Node) -> tuple[tuple[str, str], ...]:
    """Domain and operator that a node may stand for in a left side, its own first."""
    own = (node.domain, node.op)
    return (own, ("", "Add")) if _is_sum_of_two(node) else (own,)


def stands_for(node: Node, op: str, domain: str) -> bool:
    if node.op == op:
        return node.domain == domain
    return op == "Add" and not domain and _is_sum_of_two(node)


def _is_sum_of_two(node: Node) -> bool:
    return node.op == "Sum" and not node.domain and len(node.inputs) == 2
