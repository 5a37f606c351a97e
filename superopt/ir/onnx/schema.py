# pyright: basic
"""What ONNX says of an operator at an opset: its attributes, how many inputs it may have, and of which types."""

from __future__ import annotations

from functools import cache

from onnx import defs

from superopt.ir.types import DType


@cache
def attribute_names(op: str, domain: str, opset: int) -> frozenset[str] | None:
    """Names of the attributes; None for an operator that ONNX does not define at that opset."""
    schema = _schema(op, domain, opset)
    return None if schema is None else frozenset(schema.attributes)


@cache
def real_attributes(op: str, domain: str, opset: int) -> frozenset[str]:
    """Names of the attributes that hold numbers with a fraction."""
    schema = _schema(op, domain, opset)
    real = (defs.OpSchema.AttrType.FLOAT, defs.OpSchema.AttrType.FLOATS)
    return frozenset() if schema is None else frozenset(n for n, a in schema.attributes.items() if a.type in real)


@cache
def input_counts(op: str, domain: str, opset: int) -> tuple[int, int] | None:
    """How many inputs the operator must and may have; None for one that ONNX does not define at that opset."""
    schema = _schema(op, domain, opset)
    return None if schema is None else (schema.min_input, schema.max_input)


@cache
def accepts(op: str, domain: str, opset: int, position: int, dtype: DType) -> bool:
    """Whether an input may hold elements of this type; True where ONNX does not define the operator."""
    schema = _schema(op, domain, opset)
    if schema is None or not schema.inputs:
        return True
    name = {DType.FLOAT32: "float", DType.FLOAT64: "double"}.get(dtype, dtype.value)
    return f"tensor({name})" in schema.inputs[min(position, len(schema.inputs) - 1)].types


def _schema(op: str, domain: str, opset: int) -> defs.OpSchema | None:
    try:
        schema = defs.get_schema(op, opset, domain)
    except defs.SchemaError:
        return None
    return None if schema.deprecated else schema
