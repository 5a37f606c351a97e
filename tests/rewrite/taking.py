# pyright: basic
"""Rules taken on whole models, and the models run before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

import specs
from superopt.ir.graph import Graph, Label, Node, Value, make_node
from superopt.ir.onnx import Model, encode, parse
from superopt.ir.onnx.save import serialize
from superopt.ir.types import TensorType, Type
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.found import Match
from superopt.rewrite.pattern import Pattern
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import load_rules, rule_files
from superopt.rewrite.weights import combine
from superopt.rewrite.whole import graph_of, piece_of
from superopt.runtime.library import errors

REGISTRY = specs.load()
FORMER = load_rules([Path(__file__).parents[1] / "generate" / "handwritten.rules"])
"""Rules that people wrote before the generator found them; tests call them by their names."""
SHIPPED: list[Rule] = load_rules(rule_files())
GENERATED = [rule for rule in SHIPPED if rule.origin.startswith("generated ")]
SAMPLED = [*(r for r in SHIPPED if not r.origin.startswith("generated ")), *GENERATED[::60]]
"""What people wrote, and some of the others: all of them take an hour."""
BY_NAME = {rule.name: rule for rule in (*SHIPPED, *FORMER)}
RULES = Rules(BY_NAME.values(), REGISTRY)

Found = tuple[Match, Mapping[str, Value]]


@dataclass(frozen=True)
class Opened:
    """A model with its rewriter and its top graph as a piece."""

    model: Model
    rewriter: Rewriter
    piece: Piece

    def matches(self, piece: Piece, rules: Rules = RULES) -> list[Found]:
        """Every match that can be emitted."""
        return [found for node in piece.nodes for found in self.rewriter.moves(rules, node, piece)]

    def take(self, piece: Piece, found: Found) -> Piece:
        return self.rewriter.take(piece, *found, piece.names).after

    def exported(self, piece: Piece) -> bytes:
        graph = graph_of(
            piece, self.model.graph, lambda wanted: combine(self.model, wanted), self.model.ir_version >= 4, {}
        )
        return serialize(encode(self.model, graph))

    def why_not(self, pattern: Pattern) -> str:
        """The reasons at every node where the rule could begin."""
        if not pattern.roots:
            return "its results share nothing"
        return "; ".join(
            self.rewriter.why_not(pattern, node, self.piece).reason
            for node in self.piece.nodes
            if node.op == pattern.anchor.call.op
        )


def opened(
    data: bytes, vocabulary: Vocabulary | None = None, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> Opened:
    """`shapes` are those of values that onnx infers nothing for: the results of onnxruntime's own operators."""
    model = parse(data)
    if shapes is not None:
        model = replace(model, graph=_typed(model.graph, shapes))
    rewriter = Rewriter(REGISTRY, model.opset, vocabulary or Vocabulary(), model.functions)
    return Opened(model, rewriter, piece_of(model.graph, rewriter.constants))


def _typed(graph: Graph, shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    """The graph with the types that a search would have given its nodes."""
    moved: dict[Value, Value] = {}
    labels: dict[Node, Label] = {}
    for node in graph.nodes:
        label = graph.labels[node]
        inputs = [None if v is None else moved.get(v, v) for v in node.inputs]
        dtype = next((v.tensor_type.dtype for v in inputs if v is not None and v.tensor_type is not None), None)
        types = [
            TensorType(dtype, shapes[name]) if name in shapes and not _is_known(known) else known
            for known, name in zip(node.types, label.outputs, strict=True)
        ]
        new = make_node(node.op, inputs, node.attributes, types, domain=node.domain, instance=node.instance)
        moved.update(zip(node.outputs, new.outputs, strict=True))
        labels[new] = label
    return replace(graph, nodes=tuple(labels), labels=labels, outputs=tuple(moved.get(v, v) for v in graph.outputs))


def _is_known(type_: Type) -> bool:
    return isinstance(type_, TensorType) and type_.shape is not None


def rules(*names: str) -> Rules:
    return Rules([BY_NAME[name] for name in names], REGISTRY)


def run(data: bytes, feeds: Mapping[str, np.ndarray], *, optimized: bool = True) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    levels = ort.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, dict(feeds))]


REFUSED = {
    "NOT_IMPLEMENTED": "an operator that ONNX has for these elements, and the CPU provider has not",
    "Type Error": "an operator of onnxruntime's own that is not for these elements",
    "1 or more dimensions": "FastGelu of a tensor without axes",
    "epsilon_ >= 0": "SkipLayerNormalization with an epsilon below 0",
    "may be too large for stride": "ConvTranspose with an output padding that only its dilation allows",
    "output_shape is inconsistent": "the same, where it has an output shape",
}
"""What onnxruntime may say to a rewritten model: it has no kernel. A search finds that out when it times the model."""


def ran(data: bytes, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray] | None:
    """What a rewritten model answers, as it is written; None where there is no kernel for one of its nodes."""
    try:
        return run(data, feeds, optimized=False)
    except errors() as error:
        if any(words in str(error) for words in REFUSED):
            return None
        raise


TOLERANCE = {"float32": 2e-5, "float64": 1e-6, "float16": 2e-2}
"""Of the largest number of a result: sums in another order differ by no more."""


def difference(before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> str:
    """Empty where both sides are the same up to rounding."""
    for k, (a, b) in enumerate(zip(before, after, strict=True)):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"output {k}: {a.dtype}{list(a.shape)} became {b.dtype}{list(b.shape)}"
        if a.dtype.kind != "f":
            if not np.array_equal(a, b):
                return f"output {k}: {a.ravel()[:5]} became {b.ravel()[:5]}"
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        special = ~np.isfinite(x) | ~np.isfinite(y)
        if not np.array_equal(x[special], y[special], equal_nan=True):
            return f"output {k}: infinite or no number where the other is one"
        scale = 1.0 + float(np.max(np.abs(x[~special]), initial=0.0))
        gap = float(np.max(np.abs(x[~special] - y[~special]), initial=0.0))
        if gap > TOLERANCE[str(a.dtype)] * scale:
            return f"output {k}: off by {gap:.3g} where numbers are up to {scale:.3g}"
    return ""


def checked(data: bytes) -> str:
    """What onnx's checker says of a model; empty where it is content. Other domains are not its business."""
    try:
        onnx.checker.check_model(onnx.ModelProto.FromString(data))
    except onnx.checker.ValidationError as error:
        return str(error).split("\n")[0]
    return ""


def wander(start: Opened, rng: np.random.Generator, length: int, rules: Rules = RULES) -> tuple[list[str], Piece]:
    """One random way of matches, by the names of the rules, and where it ends."""
    piece, names = start.piece, list[str]()
    for _ in range(length):
        found = start.matches(piece, rules)
        if not found:
            break
        chosen = found[int(rng.integers(len(found)))]
        piece = start.take(piece, chosen)
        names.append(chosen[0].pattern.rule.name)
    return names, piece
