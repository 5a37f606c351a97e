"""Constant tensors by reference: their bytes stay where they are until somebody asks.

Every tensor can stream its content (`chunks`), show it as an array (`numpy`) and name it by a digest that is computed
once. Content is the little-endian, packed layout of ONNX `raw_data`, whatever the tensor was stored as.
"""

from __future__ import annotations

import hashlib
import mmap
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from superopt.ir.types import DType, TensorType, element_count

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

CHUNK = 1 << 22
MOST_DIMS = 64
MOST_ELEMENTS = 1 << 58

_EXTENSION_DTYPES = {
    DType.BFLOAT16: ml_dtypes.bfloat16,
    DType.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    DType.FLOAT8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    DType.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    DType.FLOAT8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    DType.FLOAT8E8M0: ml_dtypes.float8_e8m0fnu,
    DType.FLOAT4E2M1: ml_dtypes.float4_e2m1fn,
    DType.INT4: ml_dtypes.int4,
    DType.UINT4: ml_dtypes.uint4,
    DType.INT2: ml_dtypes.int2,
    DType.UINT2: ml_dtypes.uint2,
}
_BY_NUMPY = {np.dtype(v): k for k, v in _EXTENSION_DTYPES.items()}


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    if dtype is DType.STRING:
        return np.dtype(object)
    extension = _EXTENSION_DTYPES.get(dtype)
    return np.dtype(extension if extension is not None else dtype.value)


def dtype_of(array: Array) -> DType:
    if array.dtype in _BY_NUMPY:
        return _BY_NUMPY[array.dtype]
    if array.dtype.kind in "OUS":
        return DType.STRING
    return DType(array.dtype.name)


def is_numpy_shape(shape: tuple[int, ...]) -> bool:
    """numpy ends at 64 dims, and at a size in bytes that fits 63 bits even where some dim is 0."""
    return len(shape) <= MOST_DIMS and element_count(tuple(max(d, 1) for d in shape)) <= MOST_ELEMENTS


class Tensor(ABC):
    """A constant; equal only to itself. Compare `digest` to compare content."""

    def __init__(self, dtype: DType, shape: tuple[int, ...]) -> None:
        self.dtype, self.shape = dtype, shape

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, self.shape)

    @property
    def count(self) -> int:
        return element_count(self.shape)

    @property
    def nbytes(self) -> int:
        """Size of the packed content; strings count their characters."""
        if self.dtype is DType.STRING:
            return sum(len(chunk) for chunk in self.chunks())
        return (self.count * self.dtype.bits + 7) // 8

    @property
    def readable(self) -> bool:
        """Whether `numpy` works; a sparse constant, or a shape that numpy cannot hold, only passes through."""
        return is_numpy_shape(self.shape)

    @abstractmethod
    def chunks(self) -> Iterator[bytes | memoryview]: ...

    @abstractmethod
    def numpy(self) -> Array: ...

    @cached_property
    def digest(self) -> str:
        """Names type and content; equal from run to run."""
        h = hashlib.blake2b(str(self.type).encode(), digest_size=16)
        for chunk in self.chunks():
            h.update(chunk)
        return h.hexdigest()


class ArrayTensor(Tensor):
    """A tensor in memory."""

    def __init__(self, array: Array) -> None:
        super().__init__(dtype_of(array), tuple(int(d) for d in array.shape))
        self._array = array
        self._array.flags.writeable = False

    def numpy(self) -> Array:
        return self._array

    def chunks(self) -> Iterator[bytes | memoryview]:
        yield pack(self._array, self.dtype)


class FileTensor(Tensor):
    """A stretch of a file, mapped when its values are wanted and streamed when it is copied or hashed."""

    def __init__(self, path: Path, offset: int, length: int, dtype: DType, shape: tuple[int, ...]) -> None:
        super().__init__(dtype, shape)
        self.path, self.offset, self.length = path, offset, length

    def numpy(self) -> Array:
        if self.length == 0:
            return unpack(b"", self.dtype, self.shape)
        start = self.offset - self.offset % mmap.ALLOCATIONGRANULARITY
        with open(self.path, "rb") as f:
            view = mmap.mmap(f.fileno(), self.offset + self.length - start, access=mmap.ACCESS_READ, offset=start)
        return unpack(memoryview(view)[self.offset - start :], self.dtype, self.shape)

    def chunks(self) -> Iterator[bytes]:
        with open(self.path, "rb", buffering=0) as f:
            f.seek(self.offset)
            left = self.length
            while left > 0:
                chunk = f.read(min(CHUNK, left))
                if not chunk:
                    raise OSError(f"{self.path}: ended {left} bytes early")
                left -= len(chunk)
                yield chunk


def pack(array: Array, dtype: DType) -> bytes:
    """An array as ONNX raw bytes: little-endian, sub-byte elements packed from the low bits up."""
    if dtype is DType.STRING:
        return b"".join(len(s).to_bytes(8, "little") + s for s in map(_as_bytes, array.reshape(-1).tolist()))
    if dtype.bits < 8:
        per_byte = 8 // dtype.bits
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << dtype.bits) - 1)
        flat = np.pad(flat, (0, -len(flat) % per_byte)).reshape(-1, per_byte)
        shifts = np.arange(per_byte, dtype=np.uint8) * dtype.bits
        return np.bitwise_or.reduce(flat << shifts, axis=1).astype(np.uint8).tobytes()
    array = np.ascontiguousarray(array)
    if sys.byteorder == "big":
        array = array.byteswap()
    return array.tobytes()


def unpack(raw: bytes | memoryview, dtype: DType, shape: tuple[int, ...]) -> Array:
    """The inverse of `pack` for everything but strings; shares memory with `raw` where it can."""
    if dtype.bits < 8:
        per_byte = 8 // dtype.bits
        shifts = np.arange(per_byte, dtype=np.uint8) * dtype.bits
        nibbles = (np.frombuffer(raw, np.uint8)[:, None] >> shifts) & ((1 << dtype.bits) - 1)
        flat = nibbles.reshape(-1)[: element_count(shape)].astype(np.uint8)
        if dtype in (DType.INT4, DType.INT2):
            signed = flat.astype(np.int8)
            signed[flat >= 1 << (dtype.bits - 1)] -= 1 << dtype.bits
            return signed.astype(numpy_dtype(dtype)).reshape(shape)
        if dtype in (DType.UINT4, DType.UINT2):
            return flat.astype(numpy_dtype(dtype)).reshape(shape)
        return flat.view(numpy_dtype(dtype)).reshape(shape)
    array = np.frombuffer(raw, numpy_dtype(dtype)).reshape(shape)
    return array.byteswap() if sys.byteorder == "big" else array


def _as_bytes(text: object) -> bytes:
    return text if isinstance(text, bytes) else str(text).encode()
