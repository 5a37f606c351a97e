# pyright: basic
"""TensorProto to `Tensor` and back; external data by reference, never outside the model's folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from superopt.errors import BadExternalData, BadModel
from superopt.ir.tensor import Array, ArrayTensor, FileTensor, Tensor, pack
from superopt.ir.types import DType, element_count

CODES = {
    DType.FLOAT32: TensorProto.FLOAT,
    DType.UINT8: TensorProto.UINT8,
    DType.INT8: TensorProto.INT8,
    DType.UINT16: TensorProto.UINT16,
    DType.INT16: TensorProto.INT16,
    DType.INT32: TensorProto.INT32,
    DType.INT64: TensorProto.INT64,
    DType.STRING: TensorProto.STRING,
    DType.BOOL: TensorProto.BOOL,
    DType.FLOAT16: TensorProto.FLOAT16,
    DType.FLOAT64: TensorProto.DOUBLE,
    DType.UINT32: TensorProto.UINT32,
    DType.UINT64: TensorProto.UINT64,
    DType.COMPLEX64: TensorProto.COMPLEX64,
    DType.COMPLEX128: TensorProto.COMPLEX128,
    DType.BFLOAT16: TensorProto.BFLOAT16,
    DType.FLOAT8E4M3FN: TensorProto.FLOAT8E4M3FN,
    DType.FLOAT8E4M3FNUZ: TensorProto.FLOAT8E4M3FNUZ,
    DType.FLOAT8E5M2: TensorProto.FLOAT8E5M2,
    DType.FLOAT8E5M2FNUZ: TensorProto.FLOAT8E5M2FNUZ,
    DType.UINT4: TensorProto.UINT4,
    DType.INT4: TensorProto.INT4,
    DType.FLOAT4E2M1: 23,
    DType.FLOAT8E8M0: 24,
    DType.UINT2: 25,
    DType.INT2: 26,
}
DTYPES = {code: dtype for dtype, code in CODES.items()}

# Which repeated field holds a type's elements, and how many entries one element takes.
_FIELDS = {
    DType.FLOAT32: ("float_data", 1),
    DType.COMPLEX64: ("float_data", 2),
    DType.FLOAT64: ("double_data", 1),
    DType.COMPLEX128: ("double_data", 2),
    DType.INT64: ("int64_data", 1),
    DType.UINT32: ("uint64_data", 1),
    DType.UINT64: ("uint64_data", 1),
    DType.STRING: ("string_data", 1),
}


class ProtoTensor(Tensor):
    """A tensor inside the model file; decoded each time it is asked for, so that it is not held twice."""

    def __init__(self, proto: TensorProto, dtype: DType, shape: tuple[int, ...]) -> None:
        super().__init__(dtype, shape)
        self.proto = proto

    def numpy(self) -> Array:
        array = numpy_helper.to_array(self.proto)
        return array.astype(object) if self.dtype is DType.STRING else array

    def chunks(self) -> Iterator[bytes | memoryview]:
        if self.proto.HasField("raw_data"):
            yield self.proto.raw_data
        elif self.readable:
            yield pack(self.numpy(), self.dtype)
        else:
            yield self.proto.SerializeToString(deterministic=True)


class SparseConstant(Tensor):
    """A sparse initializer: it passes through, nothing reads it."""

    def __init__(self, proto: onnx.SparseTensorProto, dtype: DType, shape: tuple[int, ...]) -> None:
        super().__init__(dtype, shape)
        self.proto = proto

    @property
    def readable(self) -> bool:
        return False

    def numpy(self) -> Array:
        raise TypeError("a sparse constant has no dense value here")

    def chunks(self) -> Iterator[bytes]:
        yield self.proto.SerializeToString(deterministic=True)


def tensor_of(proto: TensorProto, folder: Path | None, where: str) -> Tensor:
    """The tensor behind a message, its size held against its shape first."""
    dtype = DTYPES.get(proto.data_type)
    if dtype is None:
        raise BadModel(f"{where}: unknown element type {proto.data_type}")
    shape = tuple(proto.dims)
    if any(d < 0 for d in shape):
        raise BadModel(f"{where}: negative dim in shape {list(shape)}")
    if proto.data_location == TensorProto.EXTERNAL:
        return external_tensor(proto, dtype, shape, folder, where)
    check_size(proto, dtype, shape, where)
    return ProtoTensor(proto, dtype, shape)


def check_size(proto: TensorProto, dtype: DType, shape: tuple[int, ...], where: str) -> None:
    count = element_count(shape)
    if proto.HasField("raw_data"):
        expected, found, unit = (count * dtype.bits + 7) // 8, len(proto.raw_data), "bytes"
        if dtype is DType.STRING:
            raise BadModel(f"{where}: a string tensor cannot use raw_data")
    else:
        name, per_element = _FIELDS.get(dtype, ("int32_data", 1))
        expected, found, unit = count * per_element, len(getattr(proto, name)), f"entries of {name}"
        if dtype.bits and dtype.bits < 8:
            expected = (count * dtype.bits + 7) // 8
    if expected != found:
        raise BadModel(f"{where}: shape {list(shape)} of {dtype} needs {expected} {unit}, found {found}")


def external_tensor(
    proto: TensorProto, dtype: DType, shape: tuple[int, ...], folder: Path | None, where: str
) -> FileTensor:
    entries = {e.key: e.value for e in proto.external_data}
    path = external_path(entries.get("location", ""), folder, where)
    needed = (element_count(shape) * dtype.bits + 7) // 8
    try:
        offset, length = int(entries.get("offset") or 0), int(entries.get("length") or needed)
    except ValueError:
        raise BadExternalData(f"{where}: offset and length must be numbers, found {str(entries)[:200]}") from None
    if dtype is DType.STRING:
        raise BadExternalData(f"{where}: string tensors cannot be external")
    if offset < 0:
        raise BadExternalData(f"{where}: external data at negative offset {offset}")
    if length != needed:
        raise BadExternalData(f"{where}: shape {list(shape)} of {dtype} needs {needed} bytes, found {length}")
    if not path.is_file():
        raise BadExternalData(f"{where}: external data file {entries.get('location')!r} is missing")
    if offset + length > path.stat().st_size:
        size, name = path.stat().st_size, entries.get("location")
        raise BadExternalData(f"{where}: external data ends at byte {offset + length}, but {name!r} has {size}")
    return FileTensor(path, offset, length, dtype, shape)


def external_path(location: str, folder: Path | None, where: str) -> Path:
    """A file inside the model's folder, symbolic links resolved; anything else is refused."""
    if folder is None:
        raise BadExternalData(f"{where}: external data {location!r} needs the model to be a file in a folder")
    if not location:
        raise BadExternalData(f"{where}: external data without a location")
    if "\0" in location or os.path.isabs(location) or "\\" in location or ":" in location:
        raise BadExternalData(f"{where}: external data {location[:200]!r} is not a relative path")
    root = folder.resolve()
    try:
        path = (root / location).resolve()
        path.exists()  # raises where the name cannot be that of a file
    except (OSError, RuntimeError):
        raise BadExternalData(f"{where}: external data {location[:200]!r} is no file name") from None
    if ".." in Path(location).parts or not path.is_relative_to(root) or path == root:
        raise BadExternalData(f"{where}: external data {location!r} leaves the model's folder")
    return path


def embedded(tensor: Tensor, name: str) -> TensorProto:
    """A message that holds the tensor's content itself."""
    if isinstance(tensor, ProtoTensor):
        proto = TensorProto()
        proto.CopyFrom(tensor.proto)
        if proto.name != name:
            proto.name = name
        return proto
    proto = TensorProto(name=name, data_type=CODES[tensor.dtype], dims=tensor.shape)
    if tensor.dtype is DType.STRING:
        proto.string_data.extend(
            s if isinstance(s, bytes) else str(s).encode() for s in tensor.numpy().reshape(-1).tolist()
        )
    else:
        proto.raw_data = b"".join(tensor.chunks())
    return proto


def referenced(tensor: Tensor, name: str, location: str, offset: int) -> TensorProto:
    """A message that points into an external data file."""
    proto = TensorProto(name=name, data_type=CODES[tensor.dtype], dims=tensor.shape, data_location=TensorProto.EXTERNAL)
    if isinstance(tensor, ProtoTensor) and tensor.proto.doc_string:
        proto.doc_string = tensor.proto.doc_string
    for key, value in (("location", location), ("offset", offset), ("length", tensor.nbytes)):
        proto.external_data.add(key=key, value=str(value))
    return proto


def from_values(values: object, dtype: DType) -> ArrayTensor:
    """A tensor from Python numbers: what the value_int, value_floats, … of a Constant node stand for."""
    return ArrayTensor(np.asarray(values, dtype=object if dtype is DType.STRING else dtype.value))
