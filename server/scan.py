"""A look at a model's bytes before anything is made of them: is it whole, is it small enough, what files does it name?

The wire format of protobuf is walked field by field over the mapped file, messages that do not matter are stepped over.
Nothing is decoded and nothing is allocated, so that a file made to exhaust a parser meets a count and a depth instead.
What passes here is still held to its limits in the job's own process.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from server.problems import Problem

FIELDS_PER_NODE = 40
FIELDS_AT_LEAST = 200_000
DEEPEST = 24
"""Graphs within graphs, the outermost counted."""
LOOK_FIELDS = 20_000
"""Between two looks whether anybody still waits."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EXTERNAL = 1

Kind = Literal["model", "graph", "node", "attribute", "tensor", "sparse", "entry", "function"]
# Message fields to go into, by the field numbers of onnx.proto.
_INSIDE: dict[Kind, dict[int, Kind]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse",
    },
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
    "entry": {},
}  # fmt: skip


@dataclass(frozen=True)
class Seen:
    nodes: int
    locations: tuple[str, ...]
    """External data files that tensors name, as they name them."""


def scan(path: Path, node_limit: int, is_given_up: Callable[[], bool] = lambda: False) -> Seen:
    """What the file holds; a `Problem` where it is no whole ONNX model, or too much of one.

    `GivenUp` where nobody waits for the answer any longer.
    """
    if os.path.getsize(path) == 0:
        raise Problem(422, "the model is empty")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        walk = _Walk(data, node_limit, is_given_up=is_given_up)
        walk.message("model", 0, len(data), 0)
    if not walk.has_graph or not walk.has_version:
        raise Problem(422, "the upload is no ONNX model: it has no graph or no ir_version")
    return Seen(walk.nodes, tuple(walk.locations))


class GivenUp(Exception):
    """Whoever sent the file is gone."""


class _Damaged(Exception):
    pass


@dataclass
class _Walk:
    data: mmap.mmap
    node_limit: int
    nodes: int = 0
    fields: int = 0
    has_graph: bool = False
    has_version: bool = False
    locations: dict[str, None] = field(default_factory=dict[str, None])
    is_given_up: Callable[[], bool] = lambda: False
    _look_at: int = 0

    def message(self, kind: Kind, start: int, end: int, depth: int) -> None:
        try:
            self._message(kind, start, end, depth)
        except _Damaged:
            raise Problem(422, "the upload is no ONNX model, or was cut off: its bytes do not parse") from None

    def _message(self, kind: Kind, start: int, end: int, depth: int) -> None:
        if depth > DEEPEST:
            raise Problem(422, f"the model nests graphs more than {DEEPEST} deep")
        inside = _INSIDE[kind]
        external, locations = False, list[str]()
        for number, wire, value, stop in self._fields(start, end):
            if kind == "model":
                self.has_graph |= number == 7 and wire == _BYTES
                self.has_version |= number == 1 and wire == _VARINT and value > 0
            if kind == "tensor" and number == 14 and wire == _VARINT:
                external = value == _EXTERNAL
            if wire != _BYTES or number not in inside:
                continue
            child = inside[number]
            if child == "node":
                self._count_node()
            if child == "entry":
                locations += self._location(value, stop)
            else:
                self._message(child, value, stop, depth + (child == "graph"))
        if external:  # every location counts: readers differ in which of two they believe
            self.locations.update(dict.fromkeys(locations or [""]))

    def _fields(self, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Number, wire type, and the value or where it begins and ends."""
        data, position = self.data, start
        while position < end:
            self.fields += 1
            if self.fields >= self._look_at:
                self._look()
            tag = data[position]
            position += 1
            if tag >= 0x80:
                tag, position = self._varint(position - 1, end)
            number, wire = tag >> 3, tag & 7
            if number == 0:
                raise _Damaged
            if wire == _BYTES:
                if position < end and data[position] < 0x80:  # nearly always
                    size = data[position]
                    position += 1
                else:
                    size, position = self._varint(position, end)
                if size > end - position:
                    raise _Damaged
                yield number, wire, position, position + size
                position += size
            elif wire == _VARINT:
                value, position = self._varint(position, end)
                yield number, wire, value, position
            elif wire in (_FIXED32, _FIXED64):
                position += 4 if wire == _FIXED32 else 8
                if position > end:
                    raise _Damaged
            else:  # groups, which ONNX has none of
                raise _Damaged

    def _look(self) -> None:
        """Now and then: is it too much, does anybody still want to know?"""
        limit = max(FIELDS_AT_LEAST, FIELDS_PER_NODE * self.node_limit)
        if self.fields > limit:
            raise Problem(413, f"the model has more than {limit} fields; it is too complex for this service")
        if self.is_given_up():
            raise GivenUp
        self._look_at = min(self.fields + LOOK_FIELDS, limit + 1)

    def _varint(self, position: int, end: int) -> tuple[int, int]:
        value, shift, data = 0, 0, self.data
        while position < end and shift < 70:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position
            shift += 7
        raise _Damaged

    def _count_node(self) -> None:
        self.nodes += 1
        if self.nodes > self.node_limit:
            raise Problem(413, f"the model has more than {self.node_limit} nodes", limit_nodes=self.node_limit)

    def _location(self, start: int, end: int) -> list[str]:
        """The value of an entry, if its key is `location`."""
        key = value = b""
        for number, wire, begin, stop in self._fields(start, end):
            if wire == _BYTES and number == 1:
                key = self.data[begin : min(stop, begin + 16)]
            elif wire == _BYTES and number == 2:
                value = self.data[begin : min(stop, begin + 1024)]
        return [value.decode("utf-8", "replace")] if key == b"location" else []
