# pyright: basic
"""onnx's own test cases, one or more for every operator. In one file, because collecting them takes long and is done
once in a process."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from superopt.errors import BadModel
from superopt.ir.onnx import parse
from tests.ir.test_border import through
from tests.ir.test_symbols import broken_promises
from tests.ir.test_text import assert_prints_and_parses

pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def test_import_and_export_give_every_case_back() -> None:
    tried = 0
    for case in collect_testcases(None):
        if isinstance(case.model, ModelProto):
            assert through(case.model) == case.model, case.name
            tried += 1
    assert tried > 1000


def test_every_case_is_printed_and_parsed() -> None:
    tried = 0
    for case in collect_testcases(None):
        if not isinstance(case.model, ModelProto):
            continue
        try:
            graph = parse(case.model.SerializeToString()).graph
        except BadModel:
            continue
        assert_prints_and_parses(graph)
        tried += 1
    assert tried > 1000


@pytest.mark.slow
@pytest.mark.parametrize("fixed", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_symbols_hold_for_every_operator(fixed: bool) -> None:
    """onnx's own test cases, with every dim of every input called `s`; with short lists of integers fixed, or not."""
    tried = 0
    for case in collect_testcases(None):
        if not isinstance(case.model, ModelProto):
            continue
        proto = ModelProto()
        proto.CopyFrom(case.model)
        assert case.data_sets
        inputs, outputs = case.data_sets[0]
        arrays = dict(zip([v.name for v in proto.graph.input], inputs, strict=True))
        if fixed:
            _fix_short_lists(proto, arrays)
        for value in proto.graph.input:
            for dim in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
                dim.dim_param = "s"
        graph = parse(proto.SerializeToString()).graph
        seen = [(p.type, arrays[name]) for p, name in zip(graph.inputs, graph.input_names, strict=True)]
        seen += [(v.type, a) for v, a in zip(graph.outputs, outputs, strict=True)]
        assert not broken_promises(seen), case.name
        tried += 1
    assert tried > 1000


def _fix_short_lists(proto: ModelProto, arrays: dict) -> None:
    for value in list(proto.graph.input):
        array = arrays[value.name]
        if isinstance(array, np.ndarray) and array.dtype.kind in "ib" and array.ndim < 2 and array.size <= 16:
            proto.graph.initializer.append(numpy_helper.from_array(array, value.name))
            proto.graph.input.remove(value)
            del arrays[value.name]
