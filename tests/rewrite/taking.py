# pyright: basic
"""Rules taken on whole models, and the models run before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime as ort

import specs
from superopt.ir.graph import Value
from superopt.ir.onnx import Model, encode, parse
from superopt.ir.onnx.save import serialize
from superopt.rewrite.emit import Vocabulary
from superopt.rewrite.match import Match
from superopt.rewrite.pattern import Pattern
from superopt.rewrite.piece import Piece
from superopt.rewrite.rewriter import Rewriter, Rules
from superopt.rewrite.rule import Rule
from superopt.rewrite.ruleset import load_rules, rule_files
from superopt.rewrite.weights import combine
from superopt.rewrite.whole import graph_of, piece_of

REGISTRY = specs.load()
SHIPPED: list[Rule] = load_rules(rule_files())
BY_NAME = {rule.name: rule for rule in SHIPPED}
RULES = Rules(SHIPPED, REGISTRY)

Found = tuple[Match, Mapping[str, Value]]


@dataclass(frozen=True)
class Opened:
    """A model with its rewriter and its top graph as a piece."""

    model: Model
    rewriter: Rewriter
    piece: Piece

    def matches(self, piece: Piece, rules: Rules = RULES) -> list[Found]:
        """Every match that can be emitted."""
        return [
            found
            for node in piece.nodes
            for pattern in rules.starting_at(node)
            for found in self.rewriter.matches(pattern, node, piece)
        ]

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


def opened(data: bytes, vocabulary: Vocabulary | None = None) -> Opened:
    model = parse(data)
    rewriter = Rewriter(REGISTRY, model.opset, vocabulary or Vocabulary(), model.functions)
    return Opened(model, rewriter, piece_of(model.graph, rewriter.constants))


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


def chains(
    start: Opened, rng: np.random.Generator, length: int, rules: Rules = RULES
) -> Iterator[tuple[list[str], Piece]]:
    """The pieces along one random way of matches."""
    piece, names = start.piece, list[str]()
    for _ in range(length):
        found = start.matches(piece, rules)
        if not found:
            return
        chosen = found[int(rng.integers(len(found)))]
        piece = start.take(piece, chosen)
        names.append(chosen[0].pattern.rule.name)
        yield list(names), piece
