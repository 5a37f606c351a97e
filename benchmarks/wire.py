"""Protobuf as it lies on the wire: read without a schema, changed, written again with every length in order."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
NUMBERS = (0, 1, 2, 7, 127, 128, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1)
_DEEPEST = 6


@dataclass(frozen=True)
class Field:
    number: int
    wire: int
    value: int | bytes | tuple[Field, ...]
    """What it holds; the fields of a message where the bytes read as one."""


def field(number: int, content: bytes) -> bytes:
    return write((Field(number, BYTES, content),))


def read(data: bytes, deep: int = 0) -> tuple[Field, ...] | None:
    """The fields of a message; None where the bytes are none."""
    found: list[Field] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire, value = tag & 7, 0
        if tag >> 3 == 0 or wire not in (VARINT, FIXED64, BYTES, FIXED32) or at > len(data):
            return None
        if wire == VARINT:
            value, at = _varint(data, at)
            found.append(Field(tag >> 3, wire, value))
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(wire, 0)
        if wire == BYTES:
            size, at = _varint(data, at)
        content = data[at : at + size]
        at += size
        if at > len(data):
            return None
        inside = read(content, deep + 1) if wire == BYTES and content and deep < _DEEPEST else None
        found.append(Field(tag >> 3, wire, content if inside is None else inside))
    return tuple(found) if at == len(data) else None


def write(fields: tuple[Field, ...]) -> bytes:
    out = bytearray()
    for each in fields:
        out += encoded(each.number << 3 | each.wire)
        if isinstance(each.value, int):
            out += encoded(each.value)
            continue
        content = write(each.value) if isinstance(each.value, tuple) else each.value
        out += (encoded(len(content)) if each.wire == BYTES else b"") + content
    return bytes(out)


def encoded(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def mutated(rng: random.Random, data: bytes) -> bytes:
    """A message with a few fields changed, somewhere inside; bytes that are no message come back as they are."""
    fields = read(data)
    for _ in range(rng.randint(1, 4)):
        if fields:
            fields = _changed(rng, fields)
    return data if fields is None else write(fields)


def _changed(rng: random.Random, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    at = rng.randrange(len(fields))
    chosen = fields[at]
    if isinstance(chosen.value, tuple) and chosen.value and rng.random() < 0.8:
        return (*fields[:at], replace(chosen, value=_changed(rng, chosen.value)), *fields[at + 1 :])
    way = rng.randrange(6)
    if way == 0:
        return (*fields[:at], *fields[at + 1 :])
    if way == 1:
        return (*fields[:at], *(chosen,) * rng.choice((2, 3, 50)), *fields[at + 1 :])
    if way == 2:
        other = rng.randrange(len(fields))
        return tuple(fields[other] if k == at else fields[at] if k == other else f for k, f in enumerate(fields))
    if way == 3:
        return (*fields[:at], replace(chosen, number=rng.choice((1, 2, 5, 7, 14, 20, 100, 1 << 28))), *fields[at + 1 :])
    value = rng.choice(NUMBERS) if chosen.wire == VARINT else rng.choice((b"", b"\xff\xfe", b"x" * 300, b"\0" * 8))
    if way == 4:
        return (*fields[:at], Field(chosen.number, VARINT, rng.choice(NUMBERS)), *fields[at + 1 :])
    wire = VARINT if isinstance(value, int) else BYTES
    return (*fields[:at], Field(chosen.number, wire, value), *fields[at + 1 :])


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number and where it ends, which is beyond the end where it is cut off."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, len(data) + 1
