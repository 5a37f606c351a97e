"""Element types, dims and value types, as ONNX has them, in one text form.

    float32[n, 3, ?]      a tensor; `n` symbolic, `?` unknown
    float32[*]            a tensor of unknown rank
    seq(int64[?])         a sequence;   optional(…), sparse(…), map(int64, …) likewise
    ?                     nothing is known

Within one lifted graph, bodies included, equal symbols are equal sizes; different ones may be equal too. That is not so
in a file: real models use one name for unrelated dims. `superopt.ir.onnx.symbols` says how the one becomes the other.
"""

from __future__ import annotations

import enum
import json
import re
from dataclasses import dataclass
from typing import TypeAlias

Dim: TypeAlias = "int | str | None"

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*\Z")


class DType(enum.StrEnum):
    FLOAT32 = "float32"
    UINT8 = "uint8"
    INT8 = "int8"
    UINT16 = "uint16"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    STRING = "string"
    BOOL = "bool"
    FLOAT16 = "float16"
    FLOAT64 = "float64"
    UINT32 = "uint32"
    UINT64 = "uint64"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"
    BFLOAT16 = "bfloat16"
    FLOAT8E4M3FN = "float8e4m3fn"
    FLOAT8E4M3FNUZ = "float8e4m3fnuz"
    FLOAT8E5M2 = "float8e5m2"
    FLOAT8E5M2FNUZ = "float8e5m2fnuz"
    UINT4 = "uint4"
    INT4 = "int4"
    FLOAT4E2M1 = "float4e2m1"
    FLOAT8E8M0 = "float8e8m0"
    UINT2 = "uint2"
    INT2 = "int2"

    @property
    def bits(self) -> int:
        """Bits of one element; strings have no fixed size and count as 0."""
        return _BITS[self]

    @property
    def is_float(self) -> bool:
        return self.value.startswith(("float", "bfloat"))

    @property
    def is_integer(self) -> bool:
        return self.value.startswith(("int", "uint"))


def _bits(dtype: DType) -> int:
    if dtype is DType.STRING:
        return 0
    if dtype is DType.BOOL:
        return 8
    match = re.match(r"[a-z]+(\d+)", dtype.value)
    assert match is not None
    return int(match.group(1))


_BITS = {dtype: _bits(dtype) for dtype in DType}


@dataclass(frozen=True, slots=True)
class TensorType:
    dtype: DType | None
    shape: tuple[Dim, ...] | None

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape when every dim is a number."""
        if self.shape is None:
            return None
        dims = tuple(d for d in self.shape if isinstance(d, int))
        return dims if len(dims) == len(self.shape) else None

    def __str__(self) -> str:
        dims = "*" if self.shape is None else ", ".join(map(format_dim, self.shape))
        return f"{self.dtype or '?'}[{dims}]"


@dataclass(frozen=True, slots=True)
class SparseType:
    dtype: DType | None
    shape: tuple[Dim, ...] | None

    def __str__(self) -> str:
        return f"sparse({TensorType(self.dtype, self.shape)})"


@dataclass(frozen=True, slots=True)
class SequenceType:
    element: Type

    def __str__(self) -> str:
        return f"seq({format_type(self.element)})"


@dataclass(frozen=True, slots=True)
class OptionalType:
    element: Type

    def __str__(self) -> str:
        return f"optional({format_type(self.element)})"


@dataclass(frozen=True, slots=True)
class MapType:
    key: DType
    value: Type

    def __str__(self) -> str:
        return f"map({self.key}, {format_type(self.value)})"


Type: TypeAlias = "TensorType | SparseType | SequenceType | OptionalType | MapType | None"


def format_dim(dim: Dim) -> str:
    if dim is None:
        return "?"
    if isinstance(dim, int):
        return str(dim)
    return dim if IDENTIFIER.match(dim) else json.dumps(dim)


def format_type(type_: Type) -> str:
    return "?" if type_ is None else str(type_)


def element_count(shape: tuple[int, ...]) -> int:
    count = 1
    for dim in shape:
        count *= dim
    return count
