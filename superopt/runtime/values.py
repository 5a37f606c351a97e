"""Numpy arrays in, numpy arrays out, for every element type onnxruntime runs.

onnxruntime's Python bindings know numpy's own types. The others (bfloat16, float8, four bits and fewer) travel
as raw bytes in an OrtValue, in ONNX's packed layout.
"""

from __future__ import annotations

import ctypes
from typing import Any, TypeAlias

import numpy as np

from superopt.errors import CannotRun
from superopt.ir.tensor import Array, dtype_of, pack, unpack
from superopt.ir.types import DType
from superopt.runtime.library import onnxruntime
from superopt.runtime.port import Port

Value: TypeAlias = "Array | list[Any] | dict[Any, Any] | None"

_ONNX_CODES = {
    DType.BFLOAT16: 16,
    DType.FLOAT8E4M3FN: 17,
    DType.FLOAT8E4M3FNUZ: 18,
    DType.FLOAT8E5M2: 19,
    DType.FLOAT8E5M2FNUZ: 20,
    DType.UINT4: 21,
    DType.INT4: 22,
    DType.FLOAT4E2M1: 23,
    DType.FLOAT8E8M0: 24,
    DType.UINT2: 25,
    DType.INT2: 26,
}


def travels_raw(port: Port) -> bool:
    return port.dtype in _ONNX_CODES


def is_bindable(port: Port) -> bool:
    return port.is_tensor and port.dtype != DType.STRING


def checked(value: Value, port: Port) -> Value:
    """The value as onnxruntime needs it: of the port's element type, contiguous, in the machine's byte order."""
    if not port.is_tensor:
        return value
    if not isinstance(value, np.ndarray):
        raise CannotRun(f"input {port.name}: expected an array of {port.dtype}, found {type(value).__name__}")
    found = dtype_of(value)
    if found != port.dtype:
        raise CannotRun(f"input {port.name}: expected {port.dtype}, found {found}")
    if found is DType.STRING:
        return np.char.decode(value, "utf-8").astype(object) if value.dtype.kind == "S" else value.astype(object)
    return np.asarray(value, dtype=value.dtype.newbyteorder("="), order="C")


def ort_value(array: Array, device: str = "cpu", device_id: int = 0) -> Any:
    """An OrtValue on the device; on the CPU it shares the array's memory where types allow."""
    values = onnxruntime().OrtValue
    dtype = dtype_of(array)
    code = _ONNX_CODES.get(dtype)
    if code is None:
        return values.ortvalue_from_numpy(array, device, device_id)
    raw = pack(array, dtype)
    on_cpu = values.ortvalue_from_shape_and_type(list(array.shape), code, "cpu")
    if raw:
        ctypes.memmove(on_cpu.data_ptr(), raw, len(raw))
    if device == "cpu":
        return on_cpu
    on_device = values.ortvalue_from_shape_and_type(list(array.shape), code, device, device_id)
    on_device.update_inplace(on_cpu)
    return on_device


def on_cpu(value: Any) -> Any:
    """The same OrtValue in the CPU's memory."""
    if value.device_name() == "cpu":
        return value
    copied = onnxruntime().OrtValue.ortvalue_from_shape_and_type(value.shape(), value.element_type(), "cpu")
    copied.update_inplace(value)
    return copied


def from_ort_value(value: Any, port: Port) -> Array:
    """A copy of a tensor that lies in the CPU's memory."""
    if not travels_raw(port):
        return np.array(value.numpy())
    size = value.tensor_size_in_bytes()
    raw = ctypes.string_at(value.data_ptr(), size) if size else b""
    return unpack(raw, DType(port.dtype), tuple(value.shape()))
