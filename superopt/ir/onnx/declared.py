# pyright: basic
"""What the file says of its inputs, in its own words: for people, who give sizes by the names they know."""

from __future__ import annotations

from superopt.ir.onnx.infer import type_of
from superopt.ir.onnx.model import Model
from superopt.ir.types import Type


def declared_inputs(model: Model) -> dict[str, Type]:
    """Types by input. The same name on two dims says nothing: the lifted graph's symbols do."""
    return {v.name: type_of(v.type) if v.HasField("type") else None for v in model.proto.graph.input}
