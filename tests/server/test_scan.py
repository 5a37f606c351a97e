# pyright: basic
"""The scan of an upload: it sees what protobuf sees, and meets a bomb with a count."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, parser

from server.names import refuse_overlap, safe_name
from server.problems import Problem
from server.scan import DEEPEST, FIELDS_AT_LEAST, scan
from tests.server.world import external, tiny, wire

pytestmark = pytest.mark.unit

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def status(path: Path, data: bytes, nodes: int = 1000) -> int:
    path.write_bytes(data)
    with pytest.raises(Problem) as refused:
        scan(path, nodes)
    return refused.value.status


def nested(depth: int) -> bytes:
    graph = helper.make_graph([], "g", [], [])
    for _ in range(depth):
        graph = helper.make_graph([helper.make_node("If", ["c"], ["y"], then_branch=graph)], "g", [], [])
    return helper.make_model(graph).SerializeToString()


def test_nodes_of_subgraphs_and_functions_count(tmp_path: Path) -> None:
    text = f"""{HEAD} g (bool c, float[1] x) => (float[1] y) {{
        y = If (c) <then_branch = t () => (float[1] a) {{ a = Relu(x) }},
                    else_branch = e () => (float[1] b) {{ d = Neg(x) b = Relu(d) }}>
    }}"""
    model = parser.parse_model(text)
    function = parser.parse_function('<opset_import: ["" : 17], domain: "f"> f (x) => (y) { a = Abs(x) y = Neg(a) }')
    model.functions.append(function)
    (tmp_path / "m").write_bytes(model.SerializeToString())
    assert scan(tmp_path / "m", 1000).nodes == 6
    assert status(tmp_path / "m", model.SerializeToString(), nodes=5) == 413


def test_external_data_is_found_wherever_a_tensor_may_be(tmp_path: Path) -> None:
    def tensor(name: str) -> TensorProto:
        made = TensorProto(name=name, data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
        made.external_data.add(key="offset", value="0")
        made.external_data.add(key="location", value=f"{name}.bin")
        return made

    constant = helper.make_node("Constant", [], ["k"], value=tensor("attribute"))
    inner = helper.make_graph([constant], "inner", [], [], [tensor("inner")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner)
    graph = helper.make_graph([node], "g", [], [], [tensor("weight"), helper.make_tensor("here", 1, [1], [1.0])])
    graph.sparse_initializer.add(values=tensor("values"), indices=tensor("indices"))
    model = helper.make_model(graph)
    (tmp_path / "m").write_bytes(model.SerializeToString())
    found = {"attribute", "inner", "weight", "values", "indices"}
    assert set(scan(tmp_path / "m", 1000).locations) == {f"{name}.bin" for name in found}


def test_both_of_two_locations_count(tmp_path: Path) -> None:
    model = ModelProto.FromString(external("a.bin"))
    model.graph.initializer[0].external_data.add(key="location", value="../b.bin")
    (tmp_path / "m").write_bytes(model.SerializeToString())
    assert scan(tmp_path / "m", 10).locations == ("a.bin", "../b.bin")


@pytest.mark.parametrize(
    "data",
    [b"", b"text, and no model at all", b"\x08\x07", b"\x00", b"\x3a\xff\xff\xff\xff\x0f", b"\x3b\x3c", b"\xff" * 40],
    ids=["empty", "text", "no graph", "field 0", "longer than the file", "group", "endless number"],
)
def test_what_is_no_model_is_refused(tmp_path: Path, data: bytes) -> None:
    assert status(tmp_path / "m", data) == 422


def test_a_model_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    whole = tiny()
    boundary = len(whole) - 6  # where the last field of the model begins: what comes before is a model of its own
    for end in range(1, len(whole)):
        if end != boundary:
            assert status(tmp_path / "m", whole[:end]) == 422, end


def test_graphs_within_graphs_have_an_end(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(nested(DEEPEST - 1))
    assert scan(tmp_path / "m", 1000).nodes == DEEPEST - 1
    assert status(tmp_path / "m", nested(DEEPEST)) == 422


def test_a_million_tiny_fields_are_not_walked(tmp_path: Path) -> None:
    assert status(tmp_path / "m", tiny() + b"\x28\x00" * (FIELDS_AT_LEAST + 1)) == 413


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10_000), byte=st.integers(0, 255), cut=st.integers(0, 20))
def test_a_damaged_model_is_an_answer_and_never_an_accident(tmp_path: Path, place: int, byte: int, cut: int) -> None:
    data = bytearray(external("a.bin", "b.bin"))
    data[place % len(data)] = byte
    data = data[: len(data) - cut]
    (tmp_path / "m").write_bytes(data)
    with contextlib.suppress(Problem):
        scan(tmp_path / "m", 1000)


@pytest.mark.parametrize("name", ["w.bin", "sub/w.bin", "ä.bin", "a b", "...", "./w.bin", ".hidden"])
def test_names_inside_the_upload_are_taken(name: str) -> None:
    assert safe_name(name) == name.removeprefix("./")


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "/etc/passwd", "../w.bin", "a/../../w", "~/x", "C:\\w", "a\\b", "\\\\host\\share", "http://h/w",
        "a\0b", "a\nb", "file:w", "x" * 201, "d/" * 300 + "w", "model.onnx", "./model.onnx",
        "MODEL.ONNX", "report.json", "\u202ea",
    ],
)  # fmt: skip
def test_names_that_leave_it_are_not(name: str) -> None:
    with pytest.raises(Problem) as refused:
        safe_name(name)
    assert refused.value.status == 422


def test_a_file_cannot_be_a_folder_too() -> None:
    refuse_overlap(["a/b", "a/c", "d"])
    with pytest.raises(Problem, match="both a file and a folder"):
        refuse_overlap(["a", "a/b/c"])


def test_a_scan_looks_up_often(tmp_path: Path) -> None:
    """Between two looks lie a few milliseconds: the largest model allowed is left in time."""
    nodes = b"".join(wire(1, wire(1, b"x") * 20 + wire(4, b"Relu")) for _ in range(5000))
    (tmp_path / "m").write_bytes(b"\x08\x08" + wire(7, nodes))
    looks: list[int] = []
    scan(tmp_path / "m", 50_000, lambda: bool(looks.append(1)))
    assert len(looks) >= 5
