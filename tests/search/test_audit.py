# pyright: basic
"""An honest result is confirmed; a model that was tampered with is not, and its first difference is told.

Tampered models come with a report that was forged to match: its checksums are those of the tampered file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.search.rewritten import (
    AUDITED_RULES,
    Rewritten,
    audited,
    convolutions,
    problem,
    rewrite,
)  # fmt: skip

pytestmark = [pytest.mark.ort, pytest.mark.usefixtures("rules_once")]


def test_an_honest_result_is_confirmed_with_what_it_rests_on(result: Rewritten) -> None:
    found = audited(result)
    assert found.confirmed, found.problems
    assert (found.passes, found.regions, found.steps, found.nodes) == ({"constant-folding": 1, "identity": 1}, 2, 2, 3)
    assert [(r.name, r.steps) for r in found.rules] == [(name, 1) for name in AUDITED_RULES]
    for rule in found.rules:
        assert rule.proof.startswith("unbounded ")
        assert rule.proof.endswith(f"digest={rule.digest}")
    assert found.weights is not None
    assert found.weights.model_dump() == {
        "original": 0, "written": 0, "folded": 1, "folded_near": 0, "combined": 2, "combined_near": 0,
    }  # fmt: skip


def node(proto: onnx.ModelProto, op: str) -> onnx.NodeProto:
    return next(n for n in proto.graph.node if n.op_type == op)


def weight(proto: onnx.ModelProto, shape: list[int]) -> onnx.TensorProto:
    return next(t for t in proto.graph.initializer if list(t.dims) == shape)


def moved(tensor: onnx.TensorProto, units: int) -> None:
    """One element moved by so many units in the last place."""
    bits = numpy_helper.to_array(tensor).copy().view(np.int32)
    bits.flat[-1] += units
    tensor.CopyFrom(numpy_helper.from_array(bits.view(np.float32), tensor.name))


def _extra_node(proto: onnx.ModelProto) -> None:
    proto.graph.node.add(op_type="Relu", name="extra", input=["y"], output=["nobody"])


def _node_in_between(proto: onnx.ModelProto) -> None:
    conv = node(proto, "Conv")
    conv.output[0] = "y0"
    proto.graph.node.insert(list(proto.graph.node).index(conv) + 1, helper.make_node("Abs", ["y0"], ["y"]))


def _node_dropped(proto: onnx.ModelProto) -> None:
    node(proto, "Add").ClearField("input")
    proto.graph.node.remove(node(proto, "MatMul"))
    node(proto, "Add").input.extend(["z", "b"])


def _nodes_swapped(proto: onnx.ModelProto) -> None:
    first = onnx.NodeProto()
    first.CopyFrom(proto.graph.node[0])
    del proto.graph.node[0]
    proto.graph.node.append(first)


def _operator(proto: onnx.ModelProto) -> None:
    node(proto, "Add").op_type = "Sub"


def _attribute(proto: onnx.ModelProto) -> None:
    node(proto, "Conv").attribute.append(helper.make_attribute("auto_pad", "VALID"))


def _wiring(proto: onnx.ModelProto) -> None:
    node(proto, "MatMul").input[0] = "t0"
    proto.graph.node.insert(0, helper.make_node("Identity", ["z"], ["t0"]))


def _rule_of_a_node(proto: onnx.ModelProto) -> None:
    entry = node(proto, "Conv").metadata_props[0]
    assert entry.key == "superopt.rule"
    entry.value = entry.value.replace("conv-factor-input", "conv-merge-summed")


def _combined(units: int) -> Callable[[onnx.ModelProto], None]:
    return lambda proto: moved(weight(proto, [16, 3, 3, 3]), units)


def _folded(proto: onnx.ModelProto) -> None:
    moved(weight(proto, [5]), 10)


def _infinite(proto: onnx.ModelProto) -> None:
    array = numpy_helper.to_array(weight(proto, [16, 3, 3, 3])).copy()
    array.flat[0] = np.inf
    weight(proto, [16, 3, 3, 3]).CopyFrom(numpy_helper.from_array(array, weight(proto, [16, 3, 3, 3]).name))


def _weight_type(proto: onnx.ModelProto) -> None:
    tensor = weight(proto, [6, 5])
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))


def _weight_unread(proto: onnx.ModelProto) -> None:
    proto.graph.initializer.append(numpy_helper.from_array(np.zeros(1000, np.float32), "ballast"))


def _input_name(proto: onnx.ModelProto) -> None:
    proto.graph.input[0].name = "data"
    node(proto, "Conv").input[0] = "data"


def _input_size(proto: onnx.ModelProto) -> None:
    proto.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 1


def _output_order(proto: onnx.ModelProto) -> None:
    first = onnx.ValueInfoProto()
    first.CopyFrom(proto.graph.output[0])
    del proto.graph.output[0]
    proto.graph.output.append(first)


def _opset(proto: onnx.ModelProto) -> None:
    proto.opset_import[0].version = 18


def _domain(proto: onnx.ModelProto) -> None:
    proto.opset_import.add(domain="com.microsoft", version=1)


def _ir_version(proto: onnx.ModelProto) -> None:
    proto.ir_version = 9


def _producer(proto: onnx.ModelProto) -> None:
    proto.producer_name = "somebody"


def _metadata(proto: onnx.ModelProto) -> None:
    proto.metadata_props[0].value = "w"


def _more_metadata(proto: onnx.ModelProto) -> None:
    proto.metadata_props.add(key="superopt.note", value="trust me")


def _deployment(proto: onnx.ModelProto) -> None:
    entry = proto.metadata_props[-1]
    assert entry.key == "superopt.deployment"
    entry.value = entry.value.replace('"intra_op_num_threads": "1"', '"intra_op_num_threads": "64"')


def _function(proto: onnx.ModelProto) -> None:
    imports = [helper.make_opsetid("", 17)]
    proto.functions.append(
        helper.make_function("own", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], imports)
    )


def _unknown_field(proto: onnx.ModelProto) -> None:
    node(proto, "Conv").MergeFromString(b"\xfa\x3f\x03abc")


TAMPERED: list[tuple[Callable[[onnx.ModelProto], None], str]] = [
    (_extra_node, "node: one too many: Relu 'extra' that computes nobody"),
    (_node_in_between, "node: one too many: Conv"),
    (_node_dropped, "node: missing: MatMul"),
    (_nodes_swapped, "node: another order"),
    (_operator, "Add 'biased' that computes t: op_type: expected 'Add', found 'Sub'"),
    (_attribute, "that computes y: attribute: one too many: 'auto_pad'"),
    (_wiring, "node: one too many: Identity"),
    (_rule_of_a_node, "metadata_props 'superopt.rule': value: expected 'conv-factor-input "),
    (_combined(10), "element [15, 2, 2, 2]: expected "),
    (_combined(-2), "(2 units in the last place apart), and a combined weight may differ by one"),
    (_folded, "(10 units in the last place apart), and what a pass computed may differ by one"),
    (_infinite, "(beyond counting apart)"),
    (_weight_type, "data_type: expected 1, found 10"),
    (_weight_unread, "initializer: one too many: 'ballast'"),
    (_input_name, "Conv 'Conv_so1' that computes y: input: expected ['x', 'y.weight'], found ['data', 'y.weight']"),
    (_input_size, "input 'z': type: "),
    (_output_order, "output: another order: expected 'y', found 't'"),
    (_opset, "opset_import ''"),
    (_domain, "opset_import: one too many: 'com.microsoft'"),
    (_ir_version, "ir_version: expected 8, found 9"),
    (_producer, "producer_name: expected 'p', found 'somebody'"),
    (_metadata, "metadata_props 'k': value: expected 'v', found 'w'"),
    (_more_metadata, "metadata_props: one too many: 'superopt.note'"),
    (_deployment, "metadata_props 'superopt.deployment': value: expected "),
    (_function, "functions: one too many: 'F'"),
    (_unknown_field, "fields that ONNX does not have"),
]


@pytest.mark.parametrize(("tamper", "reason"), TAMPERED, ids=lambda v: v.__name__ if callable(v) else "")
def test_a_tampered_model_is_told_by_its_first_difference(
    result: Rewritten, tamper: Callable[[onnx.ModelProto], None], reason: str
) -> None:
    proto = onnx.load(result.optimized)
    tamper(proto)
    result.forge(proto)
    assert reason in problem(result)


def test_without_a_forged_report_the_checksum_is_told_as_well(result: Rewritten) -> None:
    proto = onnx.load(result.optimized)
    _operator(proto)
    result.optimized.write_bytes(proto.SerializeToString())
    problems = audited(result).problems
    assert len(problems) == 2
    assert "op_type: expected 'Add', found 'Sub'" in problems[0]
    assert "is not the result that the report is about: its sha256 is " in problems[1]


def test_another_original_is_told_by_its_checksum(result: Rewritten) -> None:
    proto = onnx.load(result.original)
    moved(weight(proto, [7, 5]), 10)
    result.original.write_bytes(proto.SerializeToString())
    assert "is not the original that the report is about: its sha256 is " in problem(result)


def test_a_combined_weight_may_fall_to_the_other_side(result: Rewritten) -> None:
    """Another processor adds in another order; how many were compared how is told."""
    proto = onnx.load(result.optimized)
    _combined(1)(proto)
    result.forge(proto)
    found = audited(result)
    assert found.confirmed
    assert found.weights is not None
    assert (found.weights.combined, found.weights.combined_near) == (1, 1)


def test_a_weight_of_the_original_may_not_move_at_all(tmp_path: Path) -> None:
    result = rewrite(tmp_path, convolutions(), AUDITED_RULES[:1])
    found = audited(result)
    assert found.confirmed
    assert found.weights is not None
    assert found.weights.original == 2
    proto = onnx.load(result.optimized)
    moved(weight(proto, [7, 5]), 1)
    result.forge(proto)
    assert "(1 units in the last place apart), and what is the original's own must be there bit for bit" in problem(
        result
    )
