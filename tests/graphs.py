# pyright: basic
"""Random valid models for property tests: `cases()` is a hypothesis strategy of models with inputs that run.

They hold what passes must be careful with: constants as initializers, as Constant nodes and as overridable inputs,
neutral and equal ones, duplicate and dead nodes, shapes computed by nodes, dims that are not declared, random nodes,
and bodies of If and Loop that capture outer values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime as ort
from hypothesis import strategies as st
from onnx import helper

from tests.graph_steps import PLAIN, RANDOM, WITH_BODIES, Builder, Draw, Known, make_graph

__all__ = ["RANDOM", "Case", "assert_same", "cases", "run"]

_TOLERANCES = {"float16": (2e-2, 1e-2), "float32": (2e-5, 2e-6), "float64": (1e-12, 1e-12)}


@dataclass(frozen=True)
class Case:
    model: bytes
    feeds: dict[str, np.ndarray]


@st.composite
def cases(draw: Draw, *, max_steps: int = 12, bodies: bool = True) -> Case:
    """A model that onnxruntime runs on the given inputs; its outputs do not depend on chance."""
    opset = draw(st.sampled_from((9, 11, 13, 17, 20)))
    old = opset == 9 and draw(st.booleans())
    b = Builder(draw, opset, old, [0])
    inputs: list[onnx.ValueInfoProto] = []
    feeds: dict[str, np.ndarray] = {}
    for i in range(b.number(1, 3)):
        shape = tuple(draw(st.lists(st.sampled_from((1, 2, 3)), min_size=0, max_size=3)))
        known = Known(f"x{i}", b.pick(("float32", "float32", "float64", "int64", "int32", "bool")), shape)
        dims = [b.pick((d, d, f"d{j}", None)) for j, d in enumerate(shape)]
        inputs.append(b.declared(known, dims))
        feeds[known.name] = b.numbers(known.dtype, shape)
        b.values.append(known)
    flag = Known("flag", "bool", ())
    inputs.append(b.declared(flag, []))
    feeds["flag"] = np.array(b.pick((True, False)))
    b.values.append(flag)
    for _ in range(b.number(min(4, max_steps), max_steps)):
        x = b.any_value()
        assert x is not None
        b.pick(WITH_BODIES if bodies else PLAIN)(b, x)
    results = _results(b, [v for v in b.values if v.name not in feeds])
    for tensor in b.initializers:
        if old or b.number(0, 9) == 0:
            inputs.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    graph = make_graph(b, "random", inputs, results)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3 if old else 8)
    return Case(model.SerializeToString(), feeds)


def _results(b: Builder, made: list[Known]) -> list[Known]:
    """Some values, and often all that no node reads: otherwise most of the graph is dead."""
    results = [b.pick(made or b.values) for _ in range(b.number(1, 3))]
    if b.number(0, 3):
        read = {name for node in b.nodes for name in node.input}
        results += [v for v in made if v.name not in read]
    return list(dict.fromkeys(results))


def run(model: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What onnxruntime answers at full optimization, on one thread."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return [np.asarray(value) for value in session.run(None, feeds)]


def assert_same(before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> None:
    assert len(before) == len(after)
    for a, b in zip(before, after, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        rtol, atol = _TOLERANCES.get(str(a.dtype), (0.0, 0.0))
        if rtol:
            np.testing.assert_allclose(b.astype(np.float64), a.astype(np.float64), rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(b, a)
