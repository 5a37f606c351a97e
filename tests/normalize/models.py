# pyright: basic
"""Models in onnx's text form, normalized and run before and after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import parser

from superopt.ir.onnx import encode, parse
from superopt.normalize import normalize
from superopt.report import Rewrite
from superopt.runtime.library import errors as refusals
from tests.graphs import assert_same, run


def model(body: str, *, opset: int = 17, ir: int = 8, imports: str = "") -> bytes:
    """`g (float[n] x) => (float[n] y) { y = Relu(x) }`, with versions put before it."""
    header = f'<ir_version: {ir}, opset_import: ["" : {opset}{imports}]>'
    return parser.parse_model(f"{header}\n{body}").SerializeToString()


@dataclass(frozen=True)
class Done:
    """What became of a model."""

    before: bytes
    after: bytes
    rewrites: tuple[Rewrite, ...]
    same_graph: bool

    @property
    def names(self) -> list[str]:
        return [r.name for r in self.rewrites]

    @property
    def proto(self) -> onnx.ModelProto:
        return onnx.load_from_string(self.after)

    @property
    def ops(self) -> list[str]:
        """Operators that are left, in order, Constant nodes aside; bodies after the node that holds them."""
        return [n.op_type for n in nodes_of(self.proto.graph) if n.op_type != "Constant"]

    @property
    def constants(self) -> list[str]:
        return [t.name for t in self.proto.graph.initializer]


def done(
    data: bytes,
    *,
    growth_cap: int | None = None,
    forbid: Collection[tuple[str, str]] = (),
    limit: int | None = None,
    for_cuda: bool = False,
) -> Done:
    parsed = parse(data)
    result = normalize(parsed, growth_cap=growth_cap, forbid=forbid, limit=limit, for_cuda=for_cuda)
    after = encode(parsed, result.graph).SerializeToString()
    return Done(data, after, result.rewrites, result.graph is parsed.graph)


def held(data: bytes, feeds: dict[str, np.ndarray] | None = None, **options) -> Done:
    """Normalized, and holding what every model must: same answers, same interface, nothing left to do."""
    outcome = done(data, **options)
    ran = 0
    for size in (1, 2, 3):
        given = {**random_feeds(data, size), **(feeds or {})}
        try:
            expected = run(data, given)
        except refusals():
            continue  # the graph does not take this size
        assert_same(expected, run(outcome.after, given))
        ran += 1
    assert ran, "the model ran on no input"
    before, after = onnx.load_from_string(data), outcome.proto
    assert list(before.graph.input) == list(after.graph.input)
    assert list(before.graph.output) == list(after.graph.output)
    assert outcome.same_graph == (not outcome.rewrites)
    assert is_valid(after) or not is_valid(before)
    if not options:
        assert done(outcome.after).names == []
    return outcome


def is_valid(proto: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(proto)
    except onnx.checker.ValidationError:
        return False
    return True


def random_feeds(data: bytes, size: int) -> dict[str, np.ndarray]:
    """Small halves, so that sums are exact; dims that are open get `size`."""
    graph = onnx.load_from_string(data).graph
    defaults = {t.name for t in graph.initializer}
    rng = np.random.default_rng(size)
    feeds: dict[str, np.ndarray] = {}
    for value in graph.input:
        if value.name in defaults:
            continue
        tensor = value.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else size for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        numbers = np.asarray(rng.integers(-4, 5, shape))
        feeds[value.name] = np.asarray(numbers > 0 if dtype.kind == "b" else numbers / 2, dtype)
    return feeds


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes_of(attribute.g)


def counts(data: bytes) -> Counter[str]:
    return Counter(n.op_type for n in nodes_of(onnx.load_from_string(data).graph))
