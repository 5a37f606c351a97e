"""What can be counted of a model without running it."""

from __future__ import annotations

import hashlib
from collections import Counter

from superopt.ir.graph import Graph
from superopt.ir.onnx.model import Model
from superopt.ir.onnx.small import is_standard
from superopt.report import ModelFacts


def facts(model: Model, *, file_bytes: int | None = None, path: str | None = None) -> ModelFacts:
    operators = Counter(node.kind for node in model.graph.all_nodes())
    return ModelFacts(
        path=path if path is not None else (str(model.path) if model.path is not None else None),
        sha256=model.sha256,
        file_bytes=file_bytes if file_bytes is not None else total_bytes(model),
        ir_version=model.ir_version,
        opsets=model.opsets,
        nodes=sum(operators.values()),
        operators=dict(sorted(operators.items(), key=lambda item: (-item[1], item[0]))),
        parameters=count_parameters(model.graph),
    )


def total_bytes(model: Model) -> int:
    folder = model.folder
    outside = sum((folder / name).stat().st_size for name in model.external) if folder is not None else 0
    return len(model.data) + outside


def count_parameters(graph: Graph) -> int:
    own = sum(constant.tensor.count for constant in graph.constants)
    return own + sum(count_parameters(body) for node in graph.nodes for body in node.bodies)


def content_digest(model: Model) -> str:
    """Names the file and, where weights lie outside it, their content too."""
    if not model.external:
        return model.sha256
    h = hashlib.sha256(model.data)
    assert model.folder is not None
    for name in sorted(model.external):
        with open(model.folder / name, "rb") as f:
            h.update(hashlib.file_digest(f, "sha256").digest())
    return h.hexdigest()


def added_operators(model: Model, graph: Graph) -> dict[str, int]:
    """Operators of a rewritten graph that ONNX does not define and that the model did not have, with their counts."""
    before = Counter(node.kind for node in model.graph.all_nodes())
    after = Counter(node.kind for node in graph.all_nodes())
    return {
        kind: count
        for kind, count in sorted(after.items())
        if count > before[kind] and not _is_standard(kind, model.opset)
    }


def _is_standard(kind: str, opset: int) -> bool:
    domain, _, op = kind.rpartition("::")
    return not domain and is_standard("", op, opset)
