"""The user's own inputs: an .npz file with one array for each input.

Arrays are named like the inputs; several sets are told apart by a leading number, `0/x`, `1/x`. Nothing is unpickled,
and no array is read before its header is held against the file's size.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from superopt.errors import BadOption
from superopt.ir.tensor import Array, dtype_of, numpy_dtype
from superopt.ir.types import DType
from superopt.runtime.port import Port

MOST_BYTES = 4 << 30


def own_inputs(path: Path, inputs: Sequence[Port], overridable: Sequence[Port]) -> list[dict[str, Array]]:
    """One mapping for each set, in the order of their numbers."""
    ports = {p.name: p for p in (*inputs, *overridable)}
    sets: dict[int, dict[str, Array]] = {}
    for key, array in _load(path).items():
        number, name = _place(path, key, ports)
        sets.setdefault(number, {})[name] = _fitted(path, key, array, ports[name])
    if not sets:
        raise BadOption(f"{path}: holds no arrays, expected {_expected(inputs)}")
    for number, arrays in sets.items():
        missing = [p for p in inputs if p.name not in arrays and not p.dtype.startswith("optional")]
        if missing:
            where = f"set {number} of {path}" if len(sets) > 1 else str(path)
            raise BadOption(f"{where}: no array for {_expected(missing)}")
    return [sets[number] for number in sorted(sets)]


def _load(path: Path) -> dict[str, Array]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            if total > MOST_BYTES:
                raise BadOption(f"{path}: {total} bytes unpacked, the limit is {MOST_BYTES}")
            arrays: dict[str, Array] = {}
            for member in members:
                with archive.open(member) as stream:
                    shape, dtype = _header(stream)
                if dtype.hasobject:
                    raise BadOption(f"{path}: {member.filename} holds Python objects; save strings as a plain array")
                if _bytes(shape, dtype) > member.file_size:
                    raise BadOption(
                        f"{path}: {member.filename} claims shape {list(shape)}, which its size does not hold"
                    )
                with archive.open(member) as stream:
                    arrays[member.filename.removesuffix(".npy")] = np.lib.format.read_array(stream, allow_pickle=False)
            return arrays
    except FileNotFoundError:
        raise BadOption(f"{path}: no such file") from None
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError) as error:
        raise BadOption(f"{path}: expected an .npz file as numpy.savez writes it: {error}") from None


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return tuple(int(d) for d in shape), np.dtype(dtype)


def _bytes(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> int:
    count = 1
    for dim in shape:
        count *= dim
    return count * max(dtype.itemsize, 1)


def _place(path: Path, key: str, ports: Mapping[str, Port]) -> tuple[int, str]:
    if key in ports:
        return 0, key
    number, _, name = key.partition("/")
    if number.isdecimal() and name in ports:
        return int(number), name
    raise BadOption(f"{path}: the model has no input {key!r}; expected {_expected(list(ports.values()))}")


def _fitted(path: Path, key: str, array: Array, port: Port) -> Array:
    if not isinstance(port.dtype, DType):
        raise BadOption(f"{path}: input {port.name} is {port.dtype}; only tensors can be given as arrays")
    wanted = numpy_dtype(port.dtype)
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize and wanted.kind != "O":
        array = array.view(wanted)  # how numpy saves bfloat16 and its like
    try:
        found = str(dtype_of(array))
    except ValueError:
        found = array.dtype.name
    if found != port.dtype:
        raise BadOption(f"{path}: {key}: expected {port.dtype}, found {found}")
    shape = port.shape or ()
    # onnxruntime shows an unknown rank like a scalar.
    if shape and (
        len(shape) != array.ndim
        or any(isinstance(dim, int) and dim != size for dim, size in zip(shape, array.shape, strict=True))
    ):
        raise BadOption(f"{path}: {key}: expected shape {_shape(shape)}, found {list(array.shape)}")
    return array


def _expected(ports: Sequence[Port]) -> str:
    return ", ".join(f"{p.name} ({p.dtype}{_shape(p.shape or ())})" for p in ports) or "no arrays"


def _shape(shape: tuple[int | str | None, ...]) -> str:
    return f"[{', '.join('?' if d is None else str(d) for d in shape)}]"
