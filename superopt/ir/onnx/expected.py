# pyright: basic
"""Is a file what `encode` makes of a graph? Every field of every message is compared, tensors by their content.

Tensors are not copied to be compared: the expected messages hold numbers in their place, by which the graph's own
tensors are found. Whether two tensors that are not bit for bit the same may still count as equal, the caller decides.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from onnx import ModelProto, NodeProto, TensorProto

from superopt.ir.graph import Graph
from superopt.ir.onnx.export import encode
from superopt.ir.onnx.model import Model
from superopt.ir.onnx.tensors import CODES, ProtoTensor, tensor_of
from superopt.ir.tensor import Tensor

Judge = Callable[[Tensor, Tensor], str]
"""How the found tensor differs from the expected one, empty where it may stand for it; types are equal already."""

_DATA = frozenset(
    {"raw_data", "float_data", "int32_data", "int64_data", "uint64_data", "double_data", "string_data"}
    | {"external_data", "data_location"}
)
_NUMBER = "superopt.number"
_NAMES = ("name", "key", "domain")
_SHOWN = 80


def first_difference(original: Model, graph: Graph, metadata: Mapping[str, str], found: Model, judge: Judge) -> str:
    """Where and how a file differs from the original with `graph` in place of its own; empty where it does not."""
    tensors: list[Tensor] = []

    def number(tensor: Tensor, name: str) -> TensorProto:
        tensors.append(tensor)
        proto = TensorProto(name=name)
        proto.external_data.add(key=_NUMBER, value=str(len(tensors) - 1))
        return proto

    expected = encode(original, graph, number, metadata)
    return _Comparison(tensors, original.folder, found.folder, judge).model(expected, found.proto)


class _Comparison:
    """Every method answers with the first difference, or with nothing."""

    def __init__(self, tensors: Sequence[Tensor], folder: Path | None, other: Path | None, judge: Judge) -> None:
        self.tensors, self.folder, self.other, self.judge = tensors, folder, other, judge

    def model(self, expected: ModelProto, found: ModelProto) -> str:
        return self._message(expected, found, "")

    def _message(self, expected: Message, found: Message, where: str) -> str:
        if isinstance(expected, TensorProto):
            return self._tensor(expected, found, where)
        return self._fields(expected, found, where)

    def _fields(self, expected: Message, found: Message, where: str) -> str:
        for field in expected.DESCRIPTOR.fields:
            difference = self._field(field, expected, found, where)
            if difference:
                return difference
        same = _unknown(UnknownFieldSet(expected)) == _unknown(UnknownFieldSet(found))
        return "" if same else f"{where or 'the model'}: fields that ONNX does not have"

    def _field(self, field: Any, expected: Message, found: Message, where: str) -> str:
        name = field.name
        place = f"{where}: {name}" if where else name
        a, b = getattr(expected, name), getattr(found, name)
        if _is_list(a):
            if field.message_type is None:
                return "" if _exact(a) == _exact(b) else _told(place, list(a), list(b))
            return self._list(a, b, place)
        there, here = expected.HasField(name), found.HasField(name)
        if there != here:
            return _told(place, a if there else None, b if here else None)
        if not there:
            return ""
        if field.message_type is not None:
            return self._message(a, b, "graph" if isinstance(expected, ModelProto) else place)
        return "" if _exact([a]) == _exact([b]) else _told(place, a, b)

    def _list(self, expected: Sequence[Message], found: Sequence[Message], place: str) -> str:
        """Things that have a name are told by it, wherever they stand; then all in order."""
        ours, theirs = [_key(m) for m in expected], [_key(m) for m in found]
        if ours != theirs:
            known, there = set(ours), set(theirs)
            for key, message in zip(theirs, found, strict=True):
                if key not in known:
                    return f"{place}: one too many: {_describe(message)}"
            for key, message in zip(ours, expected, strict=True):
                if key not in there:
                    return f"{place}: missing: {_describe(message)}"
            if len(ours) != len(theirs):
                return f"{place}: expected {len(ours)}, found {len(theirs)}"
            k = next(k for k, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1])
            return f"{place}: another order: expected {_describe(expected[k])}, found {_describe(found[k])}"
        for a, b in zip(expected, found, strict=True):
            difference = self._message(a, b, f"{place} {_describe(a)}")
            if difference:
                return difference
        return ""

    def _tensor(self, expected: TensorProto, found: Any, where: str) -> str:
        """Header first, then content; one that the graph does not hold came from the original's file as it was."""
        number = next((int(e.value) for e in expected.external_data if e.key == _NUMBER), None)
        if number is None:
            if _bytes(expected) == _bytes(found) and expected.data_location != TensorProto.EXTERNAL:
                return ""
            tensor, like = tensor_of(expected, self.folder, where), expected
        else:
            tensor = self.tensors[number]
            like = _as_written(tensor, expected.name, found.data_location == TensorProto.EXTERNAL)
        difference = self._fields(_header(like), _header(found), where)
        if difference:
            return difference
        reason = self.judge(tensor, tensor_of(found, self.other, where))
        return f"{where}: {reason}" if reason else ""


def _as_written(tensor: Tensor, name: str, external: bool) -> TensorProto:
    """What `embedded` and `referenced` write besides the content."""
    if isinstance(tensor, ProtoTensor) and not external:
        header = _header(tensor.proto)
        if header.name != name:
            header.name = name
        return header
    header = TensorProto(name=name, data_type=CODES[tensor.dtype], dims=tensor.shape)
    if isinstance(tensor, ProtoTensor) and tensor.proto.doc_string:
        header.doc_string = tensor.proto.doc_string
    return header


def _header(proto: TensorProto) -> TensorProto:
    """A tensor without its content; fields that ONNX does not have are nobody's content."""
    header = TensorProto()
    for field, value in proto.ListFields():
        if field.name in _DATA:
            continue
        if _is_list(value):
            getattr(header, field.name).extend(value)
        elif field.message_type is not None:
            getattr(header, field.name).CopyFrom(value)
        else:
            setattr(header, field.name, value)
    return header


def _key(message: Message) -> object:
    """What one thing of a list is known by: a node by what it computes."""
    if isinstance(message, NodeProto):
        return tuple(message.output)
    return tuple(getattr(message, name) for name in _NAMES if hasattr(message, name))


def _describe(message: Message) -> str:
    if isinstance(message, NodeProto):
        kind = f"{message.domain}::{message.op_type}" if message.domain else message.op_type
        return f"{kind} {message.name!r} that computes {', '.join(filter(None, message.output)) or 'nothing'}"
    return next((repr(getattr(message, n)) for n in _NAMES if hasattr(message, n)), "")


def _told(where: str, expected: object, found: object) -> str:
    shown = ["nothing" if v is None else _short(v) for v in (expected, found)]
    return f"{where}: expected {shown[0]}, found {shown[1]}"


def _short(value: object) -> str:
    text = type(value).__name__ if isinstance(value, Message) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _exact(values: Iterable[object]) -> list[object]:
    """Values that tell 0.0 from −0.0 and find NaN equal to itself."""
    return [struct.pack("<d", v) if isinstance(v, float) else v for v in values]


def _bytes(message: Any) -> bytes:
    return message.SerializeToString(deterministic=True)


def _is_list(value: object) -> bool:
    return hasattr(value, "extend")


def _unknown(fields: Any) -> list[tuple[int, int, object]]:
    return [
        (f.field_number, f.wire_type, f.data if isinstance(f.data, int | bytes) else _unknown(f.data)) for f in fields
    ]
