# pyright: basic
"""Models with programs that mutants are made of, searched with a clock that counts nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import specs
from superopt.cost.coefficients import Coefficients
from superopt.cost.columns import Column
from superopt.cost.predict import Predictor
from superopt.ir.onnx import encode, parse
from superopt.normalize import normalize
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.rewriter import Rules
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import digest
from superopt.search.hunted import Budget, Hunted
from superopt.search.rulebook import Rulebook
from superopt.search.workshop import Workshop
from tests.search.clocks import Counting

REGISTRY = specs.load()
LEVELS = ((6, 8), (3, 4), (2, 2))
CHANNELS = 4
WINDOW: dict[str, Any] = {"pads": [1, 1, 1, 1]}

DEVICE = Coefficients(
    {
        Column("launch", "run"): 1e-6,
        Column("launch", "run", "convolution"): 1e-4,
        Column("launch", "run", "product"): 1e-4,
    }
)
"""Predicts what the counting clock will say."""


def small_book(*rules: Rule) -> Rulebook:
    """These rules alone; whoever adds to it does so for himself."""
    digests = {rule.name: digest(rule, REGISTRY) for rule in rules}
    return Rulebook(REGISTRY, Rules(rules, REGISTRY), digests, {r.name: str(r.proof) for r in rules}, {}, ())


def head(
    sizes: Sequence[tuple[int, ...]] = LEVELS, layers: int = 1, *, batch: int | str = 1, dtype: Any = np.float32,
    weights_are_inputs: bool = False, biases: int = 1, between: Sequence[str] = ("Relu",), kernel: int = 3,
) -> onnx.ModelProto:  # fmt: skip
    """Convolutions with shared weights on several images, one after the other, with functions between them.

    With more than one bias, the images have different ones.
    """
    rng = np.random.default_rng(0)
    weights = {f"k{n}": rng.standard_normal((CHANNELS, CHANNELS, kernel, kernel)) / 6 for n in range(layers)}
    weights |= {f"b{n}{m}": rng.standard_normal(CHANNELS) for n in range(layers) for m in range(biases)}
    nodes = []
    for level in range(len(sizes)):
        value = f"x{level}"
        for n in range(layers):
            made = f"y{level}" if n == layers - 1 else f"c{level}{n}"
            nodes.append(
                helper.make_node("Conv", [value, f"k{n}", f"b{n}{level % biases}"], [made], pads=[kernel // 2] * 4)
            )
            value = made
            for k, op in enumerate(between if n < layers - 1 else ()):
                nodes.append(helper.make_node(op, [value], [f"f{level}{n}{k}"]))
                value = f"f{level}{n}{k}"
    return model(nodes, {f"x{k}": [batch, CHANNELS, *s] for k, s in enumerate(sizes)}, weights, dtype=dtype,
                 outputs={f"y{k}": [batch, CHANNELS, *s] for k, s in enumerate(sizes)},
                 weights_are_inputs=weights_are_inputs)  # fmt: skip


def model(
    nodes: Sequence[onnx.NodeProto], inputs: Mapping[str, Sequence[int | str]], weights: Mapping[str, np.ndarray],
    outputs: Mapping[str, Sequence[int | str]], *, dtype: Any = np.float32, weights_are_inputs: bool = False,
) -> onnx.ModelProto:  # fmt: skip
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    tensors = [numpy_helper.from_array(w.astype(dtype), name) for name, w in weights.items()]
    ports = {**inputs, **({t.name: list(t.dims) for t in tensors} if weights_are_inputs else {})}
    ins, outs = ([helper.make_tensor_value_info(n, kind, s) for n, s in p.items()] for p in (ports, outputs))
    graph = helper.make_graph(nodes, "g", ins, outs, [] if weights_are_inputs else tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def hunted(
    proto: onnx.ModelProto, *rules: Rule, clock: Any = None, coefficients: Coefficients = DEVICE, **limits
) -> tuple[Workshop, Hunted]:
    """The search with no other rules than those given, and mutants."""
    opened = parse(proto.SerializeToString())
    shop = Workshop(opened, normalize(opened).graph, small_book(*rules), Vocabulary())
    usual = {"search": 60, "measure": 60, "candidates": 100, "alpha": 1.05, "growth": 1 << 20, "partial": 600.0}
    sizes = {"n": 2}
    timer: Any = clock or Counting()
    found, _ = shop.hunt(timer, Predictor(sizes, coefficients), sizes, Budget(**{**usual, **limits}), lambda *_: None)
    return shop, found


def built(shop: Workshop, found: Hunted) -> onnx.ModelProto:
    graph, made, notes = shop.build(found.trace, strict=True)
    assert made == found.trace
    assert not notes
    return encode(shop.model, graph)


def operators(proto: onnx.ModelProto, op: str) -> int:
    return sum(node.op_type == op for node in proto.graph.node)


def feeds(proto: onnx.ModelProto, batch: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    found = {}
    for value in proto.graph.input:
        kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = [d.dim_value if d.HasField("dim_value") else batch for d in value.type.tensor_type.shape.dim]
        found[value.name] = rng.standard_normal(shape).astype(kind)
    return found


def assert_same_outputs(
    before: onnx.ModelProto, after: onnx.ModelProto, batch: int = 1, tolerance: float = 1e-5
) -> None:
    import onnxruntime as ort

    given = feeds(before, batch)
    results = [
        ort.InferenceSession(p.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, given)
        for p in (before, after)
    ]
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(np.asarray(b), np.asarray(a), rtol=tolerance, atol=tolerance)
