# pyright: basic
"""Write a model so that nothing is ever half written: stage it in a folder of its own, then move it into place.

Models whose weights lay outside the file, and models too large for one protobuf, keep their weights in `NAME.data`
beside the file; unchanged weights are copied through, never loaded.
"""

from __future__ import annotations

import errno
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto, TensorProto

from superopt.errors import BadModel, CannotWrite
from superopt.ir.graph import Graph
from superopt.ir.onnx.export import encode
from superopt.ir.onnx.model import Model
from superopt.ir.onnx.tensors import embedded, referenced
from superopt.ir.tensor import CHUNK, Tensor

PROTOBUF_LIMIT = 2_000_000_000
EXTERNAL_FROM = 1024
"""Tensors of fewer bytes stay in the file: shapes and axes must be readable without the data file."""
ALIGNMENT = 4096


@dataclass(frozen=True)
class Written:
    """A model on disk: the file, and the data files beside it."""

    path: Path
    data_files: tuple[str, ...]

    @property
    def total_bytes(self) -> int:
        return sum(p.stat().st_size for p in (self.path, *(self.path.parent / d for d in self.data_files)))


def stage(model: Model, graph: Graph | None, folder: Path, name: str, data_name: str) -> Written:
    """Write the model with `graph` in place of its own (None: exactly as it was read) into `folder`."""
    with clear_write_errors(folder / name):
        folder.mkdir(parents=True, exist_ok=True)
        if graph is None:
            return _stage_original(model, folder, name)
        if not model.external and _constant_bytes(graph) < PROTOBUF_LIMIT:
            _write(folder / name, serialize(encode(model, graph)))
            return Written(folder / name, ())
        with open(folder / data_name, "wb") as data:
            proto = encode(model, graph, _external_writer(data, data_name))
            data.flush()
            os.fsync(data.fileno())
        kept = _copy_function_data(model, proto, folder)
        _write(folder / name, serialize(proto))
        if (folder / data_name).stat().st_size == 0:
            (folder / data_name).unlink()
            return Written(folder / name, kept)
        return Written(folder / name, (data_name, *kept))


def serialize(proto: ModelProto) -> bytes:
    try:
        return proto.SerializeToString(deterministic=True)
    except ValueError:
        raise BadModel("the model does not fit one protobuf of 2 GB, and its size is not in its constants") from None


def place(staged: Written, out: Path) -> Written:
    """Move a staged model to `out`, data first, so that whoever opens `out` finds all of it."""
    with clear_write_errors(out):
        for name in staged.data_files:
            target = out.parent / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists() and _same_content(staged.path.parent / name, target):
                continue
            if target.exists():
                raise CannotWrite(f"{target}: exists with other content, and the model needs a data file of that name")
            os.replace(staged.path.parent / name, target)
        os.replace(staged.path, out)
    return Written(out, staged.data_files)


def free_data_name(out: Path) -> str:
    """A name for the data file of `out` that no file has yet: an older result must stay whole until it is replaced."""
    candidate, count = f"{out.name}.data", 1
    while (out.parent / candidate).exists():
        count += 1
        candidate = f"{out.name}.{count}.data"
    return candidate


@contextmanager
def clear_write_errors(path: Path):
    try:
        yield
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else (error.strerror or str(error))
        raise CannotWrite(f"{path}: cannot be written: {reason}") from None


def _stage_original(model: Model, folder: Path, name: str) -> Written:
    _write(folder / name, model.data)
    for location in model.external:
        assert model.folder is not None
        _copy(model.folder / location, folder / location)
    return Written(folder / name, model.external)


def _copy_function_data(model: Model, proto: ModelProto, folder: Path) -> tuple[str, ...]:
    """Bodies of local functions pass through untouched, and so do the data files that their constants name."""
    kept: dict[str, None] = {}
    for function in proto.functions:
        for node in function.node:
            for attribute in node.attribute:
                if attribute.t.data_location == TensorProto.EXTERNAL:
                    kept.update((e.value, None) for e in attribute.t.external_data if e.key == "location")
    for location in kept:
        assert model.folder is not None
        _copy(model.folder / location, folder / location)
    return tuple(kept)


def _external_writer(data, data_name: str):
    seen: dict[int, int] = {}

    def write(tensor: Tensor, name: str) -> TensorProto:
        if not tensor.dtype.bits or tensor.nbytes < EXTERNAL_FROM:
            return embedded(tensor, name)
        if id(tensor) not in seen:
            data.write(bytes(-data.tell() % ALIGNMENT))
            seen[id(tensor)] = data.tell()
            for chunk in tensor.chunks():
                data.write(chunk)
        return referenced(tensor, name, data_name, seen[id(tensor)])

    return write


def _constant_bytes(graph: Graph) -> int:
    total = sum(c.tensor.nbytes for c in graph.constants)
    for node in graph.nodes:
        total += sum(a.nbytes for _, a in node.attributes if isinstance(a, Tensor))
        total += sum(_constant_bytes(body) for body in node.bodies)
    return total


def _write(path: Path, data: bytes) -> None:
    with open(path, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _same_content(a: Path, b: Path) -> bool:
    if b.is_dir() or a.stat().st_size != b.stat().st_size:
        return False
    with open(a, "rb") as f, open(b, "rb") as g:
        while True:
            x, y = f.read(CHUNK), g.read(CHUNK)
            if x != y:
                return False
            if not x:
                return True
