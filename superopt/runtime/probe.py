"""A one-node ONNX model written byte by byte, to ask onnxruntime what it supports.

`y = Relu(x)` over `float32[1]`; the field numbers are those of onnx.proto. This package knows no protobuf library.
"""

from __future__ import annotations

_FLOAT = 1


def relu_model(opset: int, ir_version: int) -> bytes:
    dim = _message(1, _integer(1, 1))
    tensor = _integer(1, _FLOAT) + _message(2, dim)
    type_proto = _message(2, _message(1, tensor))
    node = _text(1, "x") + _text(2, "y") + _text(4, "Relu")
    graph = (
        _message(1, node)
        + _text(2, "probe")
        + _message(11, _text(1, "x") + type_proto)
        + _message(12, _text(1, "y") + type_proto)
    )
    return _integer(1, ir_version) + _message(7, graph) + _message(8, _text(1, "") + _integer(2, opset))


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _integer(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _message(field: int, body: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(body)) + body


def _text(field: int, value: str) -> bytes:
    return _message(field, value.encode())
