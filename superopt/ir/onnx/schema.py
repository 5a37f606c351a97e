# pyright: basic
"""What ONNX says of an operator at an opset: which of its arguments are attributes."""

from __future__ import annotations

from functools import cache

from onnx import defs


@cache
def attribute_names(op: str, domain: str, opset: int) -> frozenset[str] | None:
    """Names of the attributes; None for an operator that ONNX does not define at that opset."""
    try:
        schema = defs.get_schema(op, opset, domain)
    except defs.SchemaError:
        return None
    return None if schema.deprecated else frozenset(schema.attributes)
