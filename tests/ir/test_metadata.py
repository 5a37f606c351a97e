# pyright: basic
"""Notes of superopt in a model: beside what the file says itself, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser

from superopt.ir.graph import Graph, Label, make_node
from superopt.ir.onnx import encode, load, parse, stage
from superopt.ir.onnx.save import annotate

pytestmark = pytest.mark.unit

TEXT = """<ir_version: 7, opset_import: ["" : 13], metadata_props: ["author" : "me", "superopt.old" : "gone"]>
g (float[n] x) => (float[n] y) { a = Neg(x)  y = Relu(a) }"""
NOTES = {"superopt.b": "2", "superopt.a": "1"}


def entries(proto: ModelProto) -> list[tuple[str, str]]:
    return [(e.key, e.value) for e in proto.metadata_props]


def test_notes_come_after_the_files_own_and_replace_older_notes() -> None:
    found = parse(parser.parse_model(TEXT).SerializeToString())
    noted = encode(found, found.graph, metadata=NOTES)
    assert entries(noted) == [("author", "me"), ("superopt.a", "1"), ("superopt.b", "2")]
    onnx.checker.check_model(noted)
    del noted.metadata_props[:]
    plain = encode(found, found.graph)
    assert entries(plain) == [("author", "me"), ("superopt.old", "gone")]
    del plain.metadata_props[:]
    assert noted == plain


def test_a_key_that_is_not_ours_is_refused() -> None:
    found = parse(parser.parse_model(TEXT).SerializeToString())
    with pytest.raises(ValueError, match="author"):
        encode(found, found.graph, metadata={"author": "somebody else"})


@pytest.mark.parametrize("external", [False, True])
def test_staged_with_notes_or_noted_afterwards_is_the_same_file(tmp_path: Path, external: bool) -> None:
    proto = parser.parse_model(TEXT.replace("Neg(x)", "Add(x, w)"))
    proto.graph.initializer.append(numpy_helper.from_array(np.arange(2000, dtype=np.float32), "w"))
    onnx.save(proto, tmp_path / "m.onnx", save_as_external_data=external, size_threshold=0, location="m.data")
    found = load(tmp_path / "m.onnx")
    noted = stage(found, found.graph, tmp_path / "noted", "o.onnx", "o.data", metadata=NOTES)
    later = stage(found, found.graph, tmp_path / "later", "o.onnx", "o.data")
    annotate(later.path, NOTES)
    assert later.path.read_bytes() == noted.path.read_bytes()
    assert sorted(p.name for p in (tmp_path / "later").iterdir()) == sorted(p.name for p in noted.path.parent.iterdir())
    assert load(later.path).graph.digest == found.graph.digest


def test_an_original_gets_no_notes(tmp_path: Path) -> None:
    found = parse(parser.parse_model(TEXT).SerializeToString())
    assert stage(found, None, tmp_path, "o.onnx", "unused", metadata=NOTES).path.read_bytes() == found.data


def test_a_node_that_superopt_made_carries_its_notes() -> None:
    found = parse(parser.parse_model(TEXT).SerializeToString())
    graph = found.graph
    old = graph.nodes[-1]
    made = make_node("Sigmoid", old.inputs, {}, old.types)
    label = Label("made", graph.labels[old].outputs, metadata=(("superopt.rule", "r"), ("superopt.proof", "p")))
    kept = replace(graph.labels[graph.nodes[0]], metadata=(("superopt.rule", "not its own"),))
    changed: Graph = replace(
        graph, nodes=(graph.nodes[0], made), outputs=(made.outputs[0],), labels={graph.nodes[0]: kept, made: label}
    )
    first, second = encode(found, changed).graph.node
    assert not first.metadata_props
    assert [(e.key, e.value) for e in second.metadata_props] == [("superopt.rule", "r"), ("superopt.proof", "p")]
    assert first == found.proto.graph.node[0]
