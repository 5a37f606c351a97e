# pyright: basic
"""The ONNX border: a model goes through it and comes out as it was; what is wrong is refused in one line."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from superopt.errors import BadExternalData, BadInput, BadModel, CannotWrite
from superopt.ir.files import Written, free_data_name, place, refuse_unwritable
from superopt.ir.onnx import encode, load, parse, stage
from superopt.ir.tensor import FileTensor
from tests.graphs import Case, cases

pytestmark = pytest.mark.unit


def model(body: str, *, opset: int = 17, ir: int = 8, imports: str = "") -> ModelProto:
    return parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}{imports}]>\n{body}')


RELU = model("g (float[n] x) => (float[n] y) { y = Relu(x) }")


def through(proto: ModelProto) -> ModelProto:
    found = parse(proto.SerializeToString())
    return encode(found, found.graph)


@settings(
    max_examples=60, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example],
)  # fmt: skip
@given(cases())
def test_import_and_export_give_a_random_model_back(case: Case) -> None:
    before = onnx.load_from_string(case.model)
    assert through(before) == before


def test_what_surrounds_the_nodes_survives() -> None:
    proto = onnx.ModelProto()
    proto.CopyFrom(RELU)
    proto.producer_name, proto.producer_version, proto.domain, proto.model_version = "p", "v", "d", 7
    proto.doc_string = "model"
    proto.metadata_props.add(key="k", value="v")
    proto.graph.doc_string, proto.graph.name = "graph", "name"
    proto.graph.metadata_props.add(key="k", value="v")
    proto.graph.input[0].doc_string = "input"
    node = proto.graph.node[0]
    node.doc_string, node.name = "node", "n"
    node.metadata_props.add(key="k", value="v")
    proto.graph.value_info.add(name="y2").type.tensor_type.elem_type = 1
    proto.graph.node.add(op_type="Neg", input=["x"], output=["y2"])
    proto.graph.quantization_annotation.add(tensor_name="y").quant_parameter_tensor_names.add(key="SCALE", value="x")
    assert through(proto) == proto


BODIES = """
g (bool c, float[2] x) => (float[2] y) {
  h = Identity(x)
  y = If (c) <
    then_branch = t () => (float[2] r) { s = Relu(h) r = Neg(s) },
    else_branch = e () => (float[2] r) { s = Abs(h) r = Neg(s) }
  >
}"""


@pytest.mark.parametrize(
    "body",
    [
        BODIES,
        "g (float[2] x) => (float[2] x) {}",
        "g (float[2] x, float[2] unused) => (float[2] y, float[2] y) { y = Relu(x) }",
        "g () => () {}",
        "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Clip(x, , ) }",
        "g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }",
        "g (seq(float[n]) s) => (optional(int64[]) n) { m = SequenceLength(s) n = Optional(m) }",
        "g (string[2] x) => (string[2] y) <string[2] w = {\"a\", \"b\"}> { y = Identity(w) }",
    ],
)  # fmt: skip
def test_unusual_models_come_back(body: str) -> None:
    proto = model(body)
    assert through(proto) == proto


def test_custom_domains_functions_and_sparse_constants_come_back() -> None:
    proto = model("g (float[2] x) => (float[2] y) { z = my.Op(x) y = my.F(z) }", imports=', "my" : 1')
    function = helper.make_function("my", "F", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])], [])
    proto.functions.append(function)
    values, indices = (numpy_helper.from_array(np.array([1], t), n) for t, n in ((np.float32, "w"), (np.int64, "")))
    proto.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [3]))
    assert through(proto) == proto
    assert parse(proto.SerializeToString()).functions == {("my", "F")}


def test_ai_onnx_is_the_default_domain() -> None:
    proto = model("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    proto.graph.node[0].domain = "ai.onnx"
    assert parse(proto.SerializeToString()).graph.nodes[0].kind == "Relu"
    assert through(proto) == proto


def test_unsorted_nodes_are_sorted_with_the_files_order_where_it_can_be() -> None:
    proto = model("g (float[2] x) => (float[2] y) { y = Relu(b) b = Neg(a) c = Abs(x) a = Exp(x) }")
    assert [n.op for n in parse(proto.SerializeToString()).graph.nodes] == ["Abs", "Exp", "Neg", "Relu"]


def test_a_body_read_before_its_capture_is_made_counts_for_the_order() -> None:
    proto = model(BODIES)
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(nodes))
    assert [n.op for n in parse(proto.SerializeToString()).graph.nodes] == ["Identity", "If"]


def edited(edit) -> bytes:
    proto = ModelProto()
    proto.CopyFrom(RELU)
    edit(proto)
    return proto.SerializeToString()


def _wrong_size(proto: ModelProto) -> None:
    proto.graph.initializer.add(name="w", data_type=1, dims=[3]).raw_data = b"1234"


def _wrong_type(proto: ModelProto) -> None:
    proto.graph.initializer.add(name="w", data_type=99, dims=[])


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "the file is empty"),
        (b"hello world\n" * 9, "not an ONNX model, or truncated"),
        (RELU.SerializeToString()[:-3], "truncated"),
        (numpy_helper.from_array(np.ones(3)).SerializeToString(), "no ONNX model"),
        (edited(lambda p: p.ClearField("opset_import")), "imports no operator set"),
        (edited(lambda p: p.graph.node[0].input.__setitem__(0, "q")), "reads 'q', which nothing produces"),
        (edited(lambda p: p.graph.node[0].ClearField("input")), "its input 'X' is missing"),
        (edited(lambda p: p.graph.node[0].input.__setitem__(0, "")), "its input 'X' is missing"),
        (edited(lambda p: p.graph.node[0].input.__setitem__(0, "y")), "cycle through node 'Relu'"),
        (edited(lambda p: p.graph.node.append(p.graph.node[0])), "the name 'y' is given to two values"),
        (edited(lambda p: setattr(p.graph.input[0].type.tensor_type, "elem_type", 77)), "unknown element type 77"),
        (edited(_wrong_type), "unknown element type 99"),
        (edited(_wrong_size), "shape [3] of float32 needs 12 bytes, found 4"),
        (RELU.SerializeToString().replace(b"Relu", b"\xff\xfelu"), "is not UTF-8"),
    ],
)
def test_bad_models_are_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(BadModel) as caught:
        parse(data)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_cut_and_no_flipped_bit_escapes_the_error_tree() -> None:
    data = model(BODIES).SerializeToString()
    accepted = 0
    for i in range(len(data)):
        for damaged in (data[:i], data[:i] + bytes([data[i] ^ 0x10]) + data[i + 1 :], data[:i] + data[i + 1 :]):
            try:
                parse(damaged)
                accepted += 1
            except BadInput:
                pass
    assert 0 < accepted < 2 * len(data)


def external(folder: Path, location: str, *, dims: int = 512, **entries: object) -> Path:
    proto = model("g (float[512] x) => (float[512] y) { y = Identity(x) }")
    tensor = proto.graph.initializer.add(name="w", data_type=1, dims=[dims], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    return folder / "m.onnx"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "w.bin").write_bytes(np.arange(512, dtype=np.float32).tobytes())
    (tmp_path / "outside.bin").write_bytes(bytes(2048))
    return folder


@pytest.mark.parametrize(
    ("location", "entries", "complaint"),
    [
        ("none.bin", {}, "is missing"),
        ("", {}, "without a location"),
        (".", {}, "leaves the model's folder"),
        ("../outside.bin", {}, "leaves the model's folder"),
        ("../models/w.bin", {}, "leaves the model's folder"),
        ("link.bin", {}, "leaves the model's folder"),
        ("/etc/hostname", {}, "is not a relative path"),
        ("C:\\w.bin", {}, "is not a relative path"),
        ("a\0b", {}, "is not a relative path"),
        ("a" * 5000, {}, "is no file name"),
        ("w.bin", {"offset": 4}, "ends at byte 2052, but 'w.bin' has 2048"),
        ("w.bin", {"offset": -4}, "negative offset"),
        ("w.bin", {"offset": 10**18}, "has 2048"),
        ("w.bin", {"length": 5}, "needs 2048 bytes, found 5"),
        ("w.bin", {"offset": "x"}, "must be numbers"),
        ("w.bin", {"offset": "9" * 5000}, "must be numbers"),
        ("w.bin", {"dims": 2**40}, "has 2048"),
    ],
)
def test_external_data_that_is_not_there_is_refused(data: Path, location: str, entries: dict, complaint: str) -> None:
    os.symlink(data.parent / "outside.bin", data / "link.bin")
    with pytest.raises(BadExternalData) as caught:
        load(external(data, location, **entries))
    assert complaint in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_external_data_stays_on_disk_and_travels_with_the_model(data: Path, tmp_path: Path) -> None:
    found = load(external(data, "w.bin"))
    tensor = next(iter(found.graph.constants)).tensor
    assert isinstance(tensor, FileTensor)
    assert found.external == ("w.bin",)
    changed = stage(found, found.graph, tmp_path / "staged", "o.onnx", "o.onnx.data")
    (tmp_path / "out").mkdir()
    placed = place(changed, tmp_path / "out" / "o.onnx")
    assert sorted(os.listdir(tmp_path / "out")) == ["o.onnx", "o.onnx.data"]
    again = load(placed.path)
    assert next(iter(again.graph.constants)).tensor.digest == tensor.digest
    original = stage(found, None, tmp_path / "kept", "o.onnx", "unused")
    assert original.data_files == ("w.bin",)
    assert original.path.read_bytes() == found.data
    assert stage(found, None, tmp_path / "shared", "o.onnx", "unused", share=True).data_files == ()


def test_tensors_that_share_a_stretch_of_file_are_written_once(data: Path, tmp_path: Path) -> None:
    proto = onnx.load(external(data, "w.bin"), load_external_data=False)
    proto.graph.initializer.append(proto.graph.initializer[0])
    proto.graph.initializer[1].name = "v"
    (data / "two.onnx").write_bytes(proto.SerializeToString())
    found = load(data / "two.onnx")
    written = stage(found, found.graph, tmp_path / "staged", "o.onnx", "o.data")
    assert {c.tensor.digest for c in load(written.path).graph.constants} == {
        c.tensor.digest for c in found.graph.constants
    }


def staged(folder: Path, **files: bytes) -> Written:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return Written(folder / "model", tuple(name for name in files if name != "model"))


def test_a_data_file_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"theirs")
    with pytest.raises(CannotWrite, match="exists with other content"):
        place(staged(tmp_path / "s", model=b"m", a=b"ours", b=b"ours"), tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["b", "s"]
    assert (tmp_path / "b").read_bytes() == b"theirs"


def test_an_equal_data_file_is_left_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"same")
    before = (tmp_path / "a").stat().st_ino
    place(staged(tmp_path / "s", model=b"m", a=b"same"), tmp_path / "out")
    assert (tmp_path / "a").stat().st_ino == before
    assert (tmp_path / "out").read_bytes() == b"m"


def test_a_data_name_is_free(tmp_path: Path) -> None:
    assert free_data_name(tmp_path / "o.onnx") == "o.onnx.data"
    (tmp_path / "o.onnx.data").touch()
    assert free_data_name(tmp_path / "o.onnx") == "o.onnx.2.data"


def test_a_path_is_tried_without_leaving_a_trace(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"content")
    for name in ("there", "new"):
        refuse_unwritable(tmp_path / name, "the result")
    assert (tmp_path / "there").read_bytes() == b"content"
    assert os.listdir(tmp_path) == ["there"]
    for bad in (tmp_path, tmp_path / "no" / "x", tmp_path / "there" / "x", Path("/proc/x")):
        with pytest.raises(CannotWrite):
            refuse_unwritable(bad, "the result")


def test_constants_that_onnxruntime_has_named_get_other_names() -> None:
    """But those that the interface or a quantization names."""
    proto = model("""g (float[4, 6] x) => (float[1, 4, 6] y, int64[3] scale_token_2) {
      a = Reshape(x, gemm_input_shape)  b = Reshape(x, gemm_output_shape_token_7)  c = Reshape(x, shape_token_one)
      d = Reshape(x, kept_token_5)  e = Reshape(x, matmul_token_12)  f = Reshape(x, matmul)
      y = Sum(a, b, c, d, e, f)
    }""")
    names = ["gemm_input_shape", "gemm_output_shape_token_7", "shape_token_one", "kept_token_5", "scale_token_2",
             "matmul_token_12", "matmul"]  # fmt: skip
    proto.graph.initializer.extend(numpy_helper.from_array(np.array([1, 4, 6]), name) for name in names)
    proto.graph.quantization_annotation.add(tensor_name="y").quant_parameter_tensor_names.add(
        key="SCALE", value="kept_token_5"
    )
    made = through(proto)
    onnx.checker.check_model(made, full_check=True)
    kept = {t.name for t in made.graph.initializer} & set(names)
    assert kept == {"shape_token_one", "kept_token_5", "scale_token_2"}
    assert len(made.graph.initializer) == len(names)


def test_values_that_onnxruntime_has_named_while_inlining_get_other_names() -> None:
    made = through(
        model("g (float[n] x) => (float[n] y) { _inlfunc_HardSwish_HS_X = Neg(x) y = Relu(_inlfunc_HardSwish_HS_X) }")
    )
    assert not {name for node in made.graph.node for name in node.output} & {"_inlfunc_HardSwish_HS_X"}
    onnx.checker.check_model(made, full_check=True)


@pytest.mark.ort
def test_what_onnxruntime_has_fused_opens_when_one_of_it_is_spelled_out_again(tmp_path: Path) -> None:
    import onnxruntime as ort

    rng, width = np.random.default_rng(0), 8
    weights = [numpy_helper.from_array(rng.standard_normal(width * (width if k % 2 == 0 else 1)).astype(np.float32)
                                       .reshape((width, width) if k % 2 == 0 else (width,)), f"w{k}")
               for k in range(6)]  # fmt: skip
    nodes = [helper.make_node(op, [first, second], [out]) for k in range(3) for op, first, second, out in (
        ("MatMul", f"x{k}", f"w{2 * k}", f"p{k}"), ("Add", f"p{k}", f"w{2 * k + 1}", f"x{k + 1}"))]  # fmt: skip
    ports = [helper.make_tensor_value_info(name, 1, [2, 3, width]) for name in ("x0", "x3")]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], weights)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "fused.onnx")
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    fused = onnx.load(tmp_path / "fused.onnx")
    assert [node.op_type for node in fused.graph.node].count("Gemm") == 3
    made = through(fused)
    assert not {t.name for t in fused.graph.initializer if "gemm" in t.name} & {t.name for t in made.graph.initializer}
    x = rng.standard_normal((2, 3, width)).astype(np.float32)
    answers = [
        ort.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x0": x})[0]
        for m in (proto, made)
    ]
    np.testing.assert_allclose(np.asarray(answers[1]), np.asarray(answers[0]), rtol=1e-5, atol=1e-6)
