# pyright: basic
"""Write a model so that nothing is ever half written: stage it in a folder of its own, then move it into place.

Models whose weights lay outside the file, and models too large for one protobuf, keep their weights in `NAME.data`
beside the file; unchanged weights are copied through, never loaded.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from onnx import ModelProto, TensorProto

from superopt.errors import BadModel
from superopt.ir.files import Written, clear_write_errors
from superopt.ir.graph import Graph
from superopt.ir.onnx.export import encode
from superopt.ir.onnx.metadata import add_metadata
from superopt.ir.onnx.model import Model
from superopt.ir.onnx.tensors import embedded, referenced
from superopt.ir.tensor import Tensor

PROTOBUF_LIMIT = 2_000_000_000
EXTERNAL_FROM = 1024
"""Tensors of fewer bytes stay in the file: shapes and axes must be readable without the data file."""
ALIGNMENT = 4096
_NO_METADATA: Mapping[str, str] = {}


def stage(
    model: Model,
    graph: Graph | None,
    folder: Path,
    name: str,
    data_name: str,
    *,
    share: bool = False,
    metadata: Mapping[str, str] = _NO_METADATA,
) -> Written:
    """Write the model with `graph` in place of its own (None: exactly as it was read) into `folder`.

    `share`: the original will lie beside itself, where its data files already are.
    `metadata`: notes of superopt for the model's own; an original never gets any.
    """
    with clear_write_errors(folder / name):
        folder.mkdir(parents=True, exist_ok=True)
        if graph is None:
            return _stage_original(model, folder, name, () if share else model.external)
        if not model.external and _constant_bytes(graph) < PROTOBUF_LIMIT:
            _write(folder / name, serialize(encode(model, graph, metadata=metadata)))
            return Written(folder / name, ())
        with open(folder / data_name, "wb") as data:
            proto = encode(model, graph, _external_writer(data, data_name), metadata)
            data.flush()
            os.fsync(data.fileno())
        kept = _copy_function_data(model, proto, folder)
        _write(folder / name, serialize(proto))
        if (folder / data_name).stat().st_size == 0:
            (folder / data_name).unlink()
            return Written(folder / name, kept)
        return Written(folder / name, (data_name, *kept))


def annotate(staged: Path, metadata: Mapping[str, str]) -> None:
    """Add notes of superopt to a model that is already staged; its data files are left alone."""
    proto = ModelProto.FromString(staged.read_bytes())
    add_metadata(proto, metadata)
    beside = staged.with_name(f"{staged.name}.annotated")
    with clear_write_errors(staged):
        _write(beside, serialize(proto))
        os.replace(beside, staged)


def serialize(proto: ModelProto) -> bytes:
    try:
        return proto.SerializeToString(deterministic=True)
    except ValueError:
        raise BadModel("the model does not fit one protobuf of 2 GB, and its size is not in its constants") from None


def _stage_original(model: Model, folder: Path, name: str, data_files: tuple[str, ...]) -> Written:
    _write(folder / name, model.data)
    for location in data_files:
        assert model.folder is not None
        _copy(model.folder / location, folder / location)
    return Written(folder / name, data_files)


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
