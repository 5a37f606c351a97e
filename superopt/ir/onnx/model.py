# pyright: basic
"""Read a model: from a path or bytes to a `Model`, every claim of the file checked on the way."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.message import DecodeError
from onnx import ModelProto

from superopt.errors import BadInput, BadModel
from superopt.ir.graph import Graph
from superopt.ir.onnx.lift import Lifter
from superopt.ir.onnx.survey import survey

OPSETS = range(7, 27)
"""Versions of the default domain whose operators superopt was tested with; others pass through as barriers."""


@dataclass(frozen=True)
class Model:
    """A graph with what surrounds it in the file."""

    graph: Graph
    ir_version: int
    opsets: dict[str, int]
    functions: frozenset[tuple[str, str]]
    """Operators the model defines itself, as (domain, name)."""
    proto: ModelProto = field(repr=False)
    data: bytes = field(repr=False)
    """The file as it was read."""
    path: Path | None
    external: tuple[str, ...]
    """External data files, relative to the model's folder."""

    @property
    def folder(self) -> Path | None:
        return None if self.path is None else self.path.resolve().parent

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def producer(self) -> str:
        """Who wrote the file, as it says."""
        return f"{self.proto.producer_name or 'unknown'} {self.proto.producer_version}".strip()

    @property
    def opset(self) -> int:
        return self.opsets.get("", 0)


def load(path: Path) -> Model:
    """Read a model file. External data stays on disk."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise BadModel(f"{path}: is no ordinary file")  # reading a pipe or a device may never end
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BadModel(f"{path}: no such file") from None
    except IsADirectoryError:
        raise BadModel(f"{path}: is a folder, expected an .onnx file") from None
    except OSError as error:
        raise BadModel(f"{path}: cannot be read: {error.strerror}") from None
    return parse(data, path)


def parse(data: bytes, path: Path | None = None) -> Model:
    """Read a model from bytes; `path` says where external data would lie."""
    where = str(path) if path is not None else "model"
    proto = ModelProto()
    if not data:
        raise BadModel(f"{where}: the file is empty, expected an ONNX model")
    try:
        proto.ParseFromString(data)
    except DecodeError:
        raise BadModel(
            f"{where}: not an ONNX model, or truncated: its {len(data)} bytes do not parse as an ONNX protobuf"
        ) from None
    if not proto.HasField("graph") or not proto.ir_version:
        raise BadModel(f"{where}: parses as a protobuf but is no ONNX model: it has no graph or no ir_version")
    opsets = {_domain(str(o.domain)): o.version for o in proto.opset_import}
    if not opsets and proto.ir_version >= 3:
        raise BadModel(f"{where}: imports no operator set; an ONNX model names at least one")
    folder = None if path is None else path.resolve().parent
    try:
        external = survey(proto, opsets, folder)
        functions = frozenset((_domain(f.domain), f.name) for f in proto.functions)
        graph = Lifter(proto, folder).lift()
    except BadInput as error:
        raise type(error)(f"{where}: {error}") from None
    return Model(graph, proto.ir_version, opsets, functions, proto, data, path, external)


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain
