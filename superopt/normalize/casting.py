"""Identities of Cast."""

from __future__ import annotations

from superopt.ir.graph import Attribute, Node, Value, make_node
from superopt.ir.onnx.tensors import CODES, DTYPES
from superopt.ir.types import DType, TensorType
from superopt.normalize.rule import Replacement, Result, Rule, dtype_of
from superopt.normalize.scope import Scope

# (bits of an exactly represented integer, smallest and largest exponent), by type: a float holds another type's values
# when it has no fewer of any.
_FLOATS = {
    DType.FLOAT16: (11, -24, 15),
    DType.BFLOAT16: (8, -133, 127),
    DType.FLOAT32: (24, -149, 127),
    DType.FLOAT64: (53, -1074, 1023),
}
_INTEGERS = {
    dtype: (int(dtype.bits), dtype.value.startswith("int")) for dtype in DType if dtype.is_integer and dtype.bits >= 8
}


def holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of one type is a value of the other."""
    if wide == narrow:
        return True
    if narrow is DType.BOOL:
        return wide in _FLOATS or wide in _INTEGERS
    if narrow in _INTEGERS:
        bits, signed = _INTEGERS[narrow]
        if wide in _INTEGERS:
            wide_bits, wide_signed = _INTEGERS[wide]
            return wide_bits > bits and (wide_signed or not signed)
        return wide in _FLOATS and bits <= _FLOATS[wide][0]
    if narrow in _FLOATS and wide in _FLOATS:
        (digits, low, high), (wide_digits, wide_low, wide_high) = _FLOATS[narrow], _FLOATS[wide]
        return digits <= wide_digits and wide_low <= low and high <= wide_high
    return False


def target(cast: Node) -> DType | None:
    return DTYPES.get(cast.attribute("to"))


def _cast_same(node: Node, scope: Scope) -> Result:
    dtype = dtype_of(node.inputs[0])
    return node.inputs[0] if dtype is not None and dtype == target(node) else None


def _cast_of_cast(node: Node, scope: Scope) -> Result:
    """Through a type that holds every value, back to where it came from or on to a type that holds them too."""
    inner = scope.operator(node.inputs[0], "Cast")
    if inner is None:
        return None
    first, middle, last = dtype_of(inner.inputs[0]), target(inner), target(node)
    if first is None or middle is None or last is None or not holds(middle, first):
        return None
    if first == last:
        return inner.inputs[0]
    if not holds(last, middle):
        return None
    return Replacement(make_node("Cast", inner.inputs, node.attributes, node.types), like=node)


def _cast_like(node: Node, scope: Scope) -> Result:
    """CastLike looks at its second operand's element type and at nothing else of it."""
    dtype = dtype_of(node.inputs[1])
    if dtype is None:
        return None
    attributes: dict[str, Attribute] = {**dict(node.attributes), "to": int(CODES[dtype])}
    return Replacement(make_node("Cast", node.inputs[:1], attributes, node.types))


def _asked_of_doubles(node: Node, scope: Scope) -> Result:
    """Whether a number is infinite, or none, can be asked of float32 as well as of float64, where it is no double."""
    cast = scope.operator(node.inputs[0], "Cast")
    source = None if cast is None else dtype_of(cast.inputs[0])
    if cast is None or source is None or target(cast) is not DType.FLOAT64 or source not in _FLOATS:
        return None
    if source is DType.FLOAT32:
        return Replacement(make_node(node.op, cast.inputs, node.attributes, node.types), like=node)
    if not holds(DType.FLOAT32, source):
        return None
    to: dict[str, Attribute] = {**dict(cast.attributes), "to": int(CODES[DType.FLOAT32])}
    wide = cast.types[0]
    assert isinstance(wide, TensorType)
    narrower = make_node("Cast", cast.inputs, to, (TensorType(DType.FLOAT32, wide.shape),))
    return Replacement(
        make_node(node.op, (Value(narrower),), node.attributes, node.types), like=node, inner=((narrower, "_float"),)
    )


RULES = (
    Rule("asked-of-doubles", ("IsInf", "IsNaN"), _asked_of_doubles),
    Rule("cast-same-type", ("Cast",), _cast_same),
    Rule("cast-of-cast", ("Cast",), _cast_of_cast),
    Rule("cast-like", ("CastLike",), _cast_like),
)
