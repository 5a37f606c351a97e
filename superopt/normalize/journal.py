"""What was done, what may still be done, and what it may cost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from superopt.ir.graph import Graph, Label, Node
from superopt.ir.tensor import Tensor
from superopt.report import Rewrite

BY_DEFINITION = "by definition"


class Journal:
    """The rewrites made, in order. With a limit, the same model gets the same first rewrites and no others."""

    def __init__(self, forbid: Collection[tuple[str, str]], limit: int | None) -> None:
        self.rewrites: list[Rewrite] = []
        self._forbid, self._limit = frozenset(forbid), limit

    def permits(self, name: str, place: str, ahead: int = 0) -> bool:
        """Whether this rewrite may be made after `ahead` others that are decided but not yet recorded."""
        if self._limit is not None and len(self.rewrites) + ahead >= self._limit:
            return False
        return (name, place) not in self._forbid

    def record(self, name: str, place: str, detail: str, proof: str = BY_DEFINITION) -> None:
        self.rewrites.append(Rewrite(name=name, place=place, detail=detail, proof=proof))


@dataclass
class Budget:
    """Bytes by which the model's constants may grow, all rewrites together."""

    cap: int
    spent: int = 0

    def allows(self, growth: int, pending: int = 0) -> bool:
        """No single step may grow by more than the cap either, whatever earlier ones have freed."""
        return growth <= self.cap and self.spent + pending + growth <= self.cap


def default_cap(graph: Graph) -> int:
    return max(1 << 20, constant_bytes(graph) // 100)


def constant_bytes(graph: Graph) -> int:
    """Bytes of all constants: initializers and tensor attributes, bodies included."""
    total = sum(constant.tensor.nbytes for constant in graph.constants)
    for node in graph.all_nodes():
        total += sum(value.nbytes for _, value in node.attributes if isinstance(value, Tensor))
        total += sum(constant.tensor.nbytes for body in node.bodies for constant in body.constants)
    return total


def place_of(node: Node, label: Label, where: str) -> str:
    """How reports name a node: its own name, or its operator and first output; `where` is the way through bodies."""
    if label.name:
        return f"{where}{label.name}"
    return f"{where}{node.kind}:{next((name for name in label.outputs if name), '')}"
