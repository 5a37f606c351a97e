"""Where a rule's left side occurs in a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from superopt.ir.graph import Node, Value
from superopt.ir.types import DType
from superopt.ops.formula import Tensor
from superopt.ops.index import Index
from superopt.rewrite.pattern import Pattern, Result


@dataclass(frozen=True)
class Match:
    pattern: Pattern
    nodes: tuple[Node, ...]
    """Graph nodes, by the pattern's."""
    inputs: Mapping[str, Value]
    coerced: Mapping[str, tuple[Index, ...]]
    """Constants that the rule sees with fewer or more leading axes of size 1."""
    names: Mapping[str, Any]
    """Sizes, blocks, attributes, bundles, numbers."""
    dtype: DType
    tensors: Mapping[str, Tensor] = field(repr=False)
    """Inputs and left side as the rule's program computes them."""

    @property
    def results(self) -> dict[str, Value]:
        """The values that the right side computes again."""
        found: dict[str, Value] = {}
        for name, reference in self.pattern.results.items():
            if isinstance(reference, Result):
                found[name] = Value(self.nodes[reference.node], reference.output)
            else:
                found[name] = self.inputs[reference.name]
        return found
