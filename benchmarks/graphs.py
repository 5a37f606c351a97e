# pyright: basic
"""What can be seen of a model file without running it; a file is looked at once."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import AttributeProto, GraphProto, NodeProto, numpy_helper


@dataclass(frozen=True)
class Facts:
    nodes: int
    file_bytes: int
    graph: str  # digest of what is computed, whatever it says about itself


@functools.cache
def facts(path: Path) -> Facts:
    model = onnx.load(path)
    return Facts(count_nodes(model.graph), path.stat().st_size, graph_digest(model.graph))


@functools.cache
def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def count_nodes(graph: GraphProto) -> int:
    """Nodes, those of nested subgraphs included."""
    bodies = [body for node in graph.node for attribute in node.attribute for body in _bodies(attribute)]
    return len(graph.node) + sum(map(count_nodes, bodies))


def _bodies(attribute: AttributeProto) -> list[GraphProto]:
    return [attribute.g] if attribute.type == AttributeProto.GRAPH else list(attribute.graphs)


def graph_digest(graph: GraphProto) -> str:
    """Equal for files that differ in names of nodes, metadata, doc strings and inferred shapes alone."""
    found = hashlib.sha256()
    for node in graph.node:
        bare = NodeProto()
        bare.CopyFrom(node)
        for field in ("name", "doc_string", "metadata_props"):
            bare.ClearField(field)
        found.update(bare.SerializeToString(deterministic=True))
    for tensor in sorted(graph.initializer, key=lambda t: t.name):
        found.update(f"{tensor.name} {tensor.data_type} {list(tensor.dims)}".encode())
        found.update(numpy_helper.to_array(tensor).tobytes())
    return found.hexdigest()
