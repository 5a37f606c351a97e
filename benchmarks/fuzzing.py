# pyright: basic
"""Uploads gone wrong, one after the other from a seed: real small models, damaged in bytes, in structure, in meaning.

Every upload is a request as a client would send it: a path with a query, headers, a body. Most models are nearly right,
because what is plainly wrong is refused at the first byte.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

from onnx import AttributeProto, ModelProto, TensorProto, helper, numpy_helper, parser

from benchmarks.sample import build
from benchmarks.wire import field, mutated

BOUNDARY = "fuzz-boundary"
EXTREMES = (0, 1, -1, 2, 7, 127, 128, 255, 1 << 16, 1 << 31, (1 << 31) - 1, 1 << 32, (1 << 63) - 1, -(1 << 63))
NAMES = ("", ".", "..", "../w", "/etc/passwd", "w", "w\0", "a/../w", "model.onnx", "C:\\w", "w" * 600, "é", "w/v", "~")
TYPES = ("", "x/y", "multipart/form-data", "application/octet-stream; charset=x", "application/json")
OPTIONS = (
    "budget", "target", "accept", "alpha", "allow", "options", "rules", "partial", "opset", "candidates", "seed",
    "shape", "dim", "inputs", "threads", "costs", "growth", "time_limit", "memory_limit", "no_such_option",
)  # fmt: skip
VALUES = (
    0, 1, -1, 2.5, 1e308, -1e308, 1 << 70, "", "cpu", "cuda", "x", "NaN", "nan", "inf", "é", "\0", True, None, [], {},
    [1, 2], {"x": [1, 2]}, {"x": 3}, {"": 0}, {"x": {"1": 2}}, [[[[[[]]]]]], "a" * 5000, {"x": [[8, 1.0], [16, 2.0]]},
)  # fmt: skip
TEXTS = (
    """<ir_version: 8, opset_import: ["" : 17]>
    g (float[n, 3] x) => (float[n, 3] y) <float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, float[3] b = {1, 2, 3}>
    { m = MatMul(x, w)  a = Add(m, b)  y = Relu(a) }""",
    """<ir_version: 8, opset_import: ["" : 17]>
    g (bool c, float[2] x) => (float[2] y) {
      y = If (c) <then_branch = t () => (float[2] p) { p = Neg(x) }, else_branch = e () => (float[2] q) { q = Relu(x) }>
    }""",
    """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
    g (float[2, 2] x) => (float[2, 2] y) { h = local.twice(x)  y = local.twice(h) }
    <opset_import: ["" : 17], domain: "local">
    twice (a) => (b) { b = Add(a, a) }""",
    """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1, 2, 5, 5] x) => (float[1, 2, 5, 5] y) <float[2, 2, 1, 1] k = {1, 0, 0, 1}>
    { c = Conv(x, k)  s = Sigmoid(c)  m = Mul(c, s)  y = Transpose<perm = [0, 1, 3, 2]>(m) }""",
)  # fmt: skip


@dataclass(frozen=True)
class Upload:
    """One request; `kind` says what was done to it."""

    kind: str
    path: str
    headers: dict[str, str]
    body: bytes


@cache
def models() -> tuple[bytes, ...]:
    """What is damaged: small real models, one of them with external data."""
    texts = [parser.parse_model(text) for text in TEXTS]
    outside = ModelProto.FromString(texts[0].SerializeToString())
    for tensor in outside.graph.initializer:
        data = numpy_helper.to_array(tensor).tobytes()
        del tensor.float_data[:]
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "w"), ("offset", "0"), ("length", str(len(data)))):
            tensor.external_data.add(key=key, value=value)
    return tuple(m.SerializeToString() for m in (*texts, outside, build()))


def uploads(seed: int, query: str = "") -> Iterator[Upload]:
    """Without end; the same for the same seed. `query` goes along with those that have no other options."""
    rng = random.Random(seed)
    while True:
        kind, damage = rng.choice(tuple(DAMAGES.items()))
        model = damage(rng, rng.choice(models()))
        yield _request(rng, kind, model, query)


def _request(rng: random.Random, kind: str, model: bytes, query: str) -> Upload:
    path = rng.choice(("/v1/jobs", "/v1/jobs", "/v1/optimize"))
    headers: dict[str, str] = {}
    if rng.random() < 0.1:
        kind += ", query"
        query = "&".join(f"{rng.choice(OPTIONS)}={_quoted(rng)}" for _ in range(rng.randint(1, 3)))
    if rng.random() < 0.05:
        kind += ", headers"
        headers["Idempotency-Key"] = rng.choice(("a", "", "x" * 300, "a b", "a,b"))
        headers["Prefer"] = rng.choice(("wait=0", "wait=x", "wait=99999999999", ";;=", "respond-async"))
    path += f"?{query}" if query else ""
    if rng.random() < 0.5:
        headers["Content-Type"] = rng.choice(TYPES) if rng.random() < 0.03 else "application/octet-stream"
        return Upload(kind, path, headers, model)
    headers["Content-Type"] = f"multipart/form-data; boundary={BOUNDARY}"
    kind, body = _form(rng, kind, model, bool(query))
    return Upload(f"{kind}, form", path, headers, body)


def _form(rng: random.Random, kind: str, model: bytes, plain: bool) -> tuple[str, bytes]:
    parts = [("model", "model.onnx", model)]
    if b"location" in model or rng.random() < 0.1:
        size = rng.choice((48, 36, 0, 1, 100, 5000))
        parts.append(("data", "w" if rng.random() < 0.8 else rng.choice(NAMES), bytes(size)))
    if not plain and rng.random() < 0.5:
        kind += ", options"
        parts.append(("options", "", _options(rng)))
    if rng.random() < 0.1:
        parts.append((rng.choice(("model", "data", "options", "x", "")), rng.choice(NAMES), rng.randbytes(9)))
    rng.shuffle(parts)
    text = b"".join(_part(*part) for part in parts) + f"--{BOUNDARY}--\r\n".encode()
    return (f"{kind}, cut form", flipped(rng, text)) if rng.random() < 0.1 else (kind, text)


def _part(name: str, file: str, content: bytes) -> bytes:
    named = f'; filename="{file}"' if file else ""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'
    return head.encode("utf-8", "replace") + content + b"\r\n"


def _options(rng: random.Random) -> bytes:
    if rng.random() < 0.1:
        return rng.choice((b"", b"{", b"[]", b"null", b'{"budget": NaN}', b'{"a": ' * 5000, b"\xff", b'"\\ud800"'))
    return json.dumps({rng.choice(OPTIONS): rng.choice(VALUES) for _ in range(rng.randint(1, 4))}).encode()


def _quoted(rng: random.Random) -> str:
    value = str(rng.choice(VALUES))[:2000]
    return "".join(f"%{b:02x}" for b in value.encode("utf-8", "replace"))


def flipped(rng: random.Random, data: bytes) -> bytes:
    """A few bytes changed, put in, taken out or doubled; or the end is missing."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(found) + 1)
        way = rng.randrange(6)
        size = rng.choice((1, 1, 2, 8, 100))
        if way == 0 and found:
            found[at % len(found)] ^= 1 << rng.randrange(8)
        elif way == 1:
            found[at:at] = rng.randbytes(size)
        elif way == 2:
            del found[at : at + size]
        elif way == 3:
            found[at:at] = found[at : at + size]
        elif way == 4:
            found[at : at + size] = bytes(rng.choice((0, 0x7F, 0x80, 0xFF)) for _ in range(size))
        elif rng.random() < 0.3:
            del found[at:]
    return bytes(found)


def spliced(rng: random.Random, data: bytes) -> bytes:
    """The beginning of one model and the end of another: messages of the same kind are merged."""
    other = rng.choice(models())
    return data[: rng.randrange(len(data))] + other[rng.randrange(len(other)) :] if rng.random() < 0.5 else data + other


def nested(rng: random.Random, data: bytes) -> bytes:
    """Graphs within graphs, from just allowed to far too deep."""
    graph = ModelProto.FromString(data).graph.SerializeToString()
    for _ in range(rng.choice((2, 20, 30, 200))):
        graph = field(1, field(5, field(6, graph) + b"\xa0\x01\x05") + field(4, b"If"))
    return data + field(7, graph)


def meaning(rng: random.Random, data: bytes) -> bytes:
    """A message that parses, and says something else."""
    model = ModelProto.FromString(data)
    for _ in range(rng.randint(1, 3)):
        rng.choice(_MEANINGS)(rng, model)
    return model.SerializeToString()


def _operator(rng: random.Random, model: ModelProto) -> None:
    node = rng.choice(model.graph.node)
    node.op_type = rng.choice(("Relu", "If", "Loop", "Scan", "MatMul", "Conv", "Reshape", "Nope", "", "Concat", "LSTM"))
    node.domain = rng.choice(("", "", "com.microsoft", "ai.onnx.ml", "local", "no.such"))


def _wiring(rng: random.Random, model: ModelProto) -> None:
    values = [name for node in model.graph.node for name in (*node.input, *node.output)] + ["", "nobody"]
    node = rng.choice(model.graph.node)
    names = rng.choice((node.input, node.output))
    if names:
        names[rng.randrange(len(names))] = rng.choice(values)
    else:
        names.append(rng.choice(values))


def _attribute(rng: random.Random, model: ModelProto) -> None:
    node = rng.choice(model.graph.node)
    value = rng.choice((rng.choice(EXTREMES), [rng.choice(EXTREMES) for _ in range(3)], 0.5, "text", [1.0]))
    made = helper.make_attribute(rng.choice(("axis", "perm", "kernel_shape", "pads", "to", "group", "x")), value)
    made.type = rng.choice((made.type, AttributeProto.GRAPH, AttributeProto.TENSOR, AttributeProto.INTS))
    node.attribute.append(made)


def _weight(rng: random.Random, model: ModelProto) -> None:
    if not model.graph.initializer:
        return
    tensor = rng.choice(model.graph.initializer)
    way = rng.randrange(5)
    if way == 0:
        tensor.data_type = rng.choice((0, 1, 7, 8, 10, 16, 23, 99))
    elif way == 1:
        tensor.dims.append(rng.choice(EXTREMES))
    elif way == 2 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(EXTREMES)
    elif way == 3:
        tensor.raw_data = rng.randbytes(rng.choice((0, 1, 12, 48)))
    else:
        tensor.data_location = TensorProto.EXTERNAL
        key = rng.choice(("location", "offset", "length", "checksum", "x"))
        tensor.external_data.add(key=key, value=rng.choice((*NAMES, "-1", "0", "99999999999999999999", "x")))


def _types(rng: random.Random, model: ModelProto) -> None:
    ports = [*model.graph.input, *model.graph.output, *model.graph.value_info]
    port = rng.choice(ports).type.tensor_type
    port.elem_type = rng.choice((0, 1, 7, 9, 10, 99))
    if rng.random() < 0.5:
        dim = port.shape.dim.add()
        dim.dim_value = rng.choice(EXTREMES)


def _versions(rng: random.Random, model: ModelProto) -> None:
    model.ir_version = rng.choice((0, 1, 3, 8, 13, 99, 1 << 40))
    model.opset_import.add(domain=rng.choice(("", "ai.onnx", "x")), version=rng.choice((0, 1, 13, 26, 999, -5)))


_MEANINGS = (_operator, _wiring, _attribute, _weight, _types, _versions)


DAMAGES: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "bytes": flipped, "spliced": spliced, "fields": mutated, "nested": nested, "meaning": meaning,
}  # fmt: skip
