# pyright: basic
"""The onnx package's own test models, and how they are fed, run and compared.

Kept apart from superopt on purpose: a suite that fed and compared models with the code it judges would
share that code's mistakes. Only onnx, numpy and onnxruntime are used here.
"""

from __future__ import annotations

import ctypes
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

# What a value is here: an array, a list of values (a sequence), or None (an empty optional).
Value = Any
DataSet = tuple[tuple[Value, ...], tuple[Value, ...]]

FOLDERS = ("simple", "pytorch-converted", "pytorch-operator")
KINDS = ("node", *FOLDERS, "light")

# Operators whose results differ from run to run, or from one implementation to the next.
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}

# How far the candidate may be from the original, relative to the largest magnitude of the output: both
# run on the same kernels, so only the order of a few operations may differ. Any other type: exactly equal.
SAME = {"float64": 1e-10, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}


@dataclass(frozen=True)
class Case:
    """One model of the suite with its inputs and expected outputs."""

    name: str
    kind: str
    model: bytes
    data_sets: tuple[DataSet, ...]
    rtol: float
    atol: float


class NotRun(Exception):
    """onnxruntime does not run this model, or cannot be handed these inputs."""


def collect(kinds: Sequence[str] = KINDS, folder: Path | None = None) -> Iterator[Case]:
    """The cases that the installed onnx package generates or carries, and those under `folder`."""
    data = Path(onnx.__file__).parent / "backend" / "test" / "data"
    for kind in kinds:
        if kind == "node":
            yield from node_cases()
        elif kind == "light":
            yield from light_cases(data)
        else:
            for path in sorted((data / kind).glob("*/model.onnx")):
                yield folder_case(path.parent, kind)
    if folder is not None:
        for path in sorted(folder.glob("**/model.onnx")):
            yield folder_case(path.parent, path.parent.parent.name)


def node_cases() -> Iterator[Case]:
    """One-operator models, made by running the code that the operator documentation is made from."""
    from onnx.backend.test.case.node import collect_testcases  # it computes every case: only when asked for

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow and division by zero are what some cases are about
        found = collect_testcases(None)  # pyright: ignore[reportArgumentType]
    for case in found:
        assert case.model is not None
        assert case.data_sets is not None
        data_sets = tuple(
            (tuple(plain(v) for v in inputs), tuple(plain(v) for v in outputs)) for inputs, outputs in case.data_sets
        )
        yield Case(case.name, "node", case.model.SerializeToString(), data_sets, case.rtol, case.atol)


def folder_case(folder: Path, kind: str) -> Case:
    """A folder with `model.onnx` and `test_data_set_*/{input,output}_*.pb`."""
    content = (folder / "model.onnx").read_bytes()
    graph = onnx.load_from_string(content).graph
    settings = json.loads((folder / "data.json").read_text()) if (folder / "data.json").exists() else {}
    data_sets = tuple(
        (load_values(data, "input", graph.input), load_values(data, "output", graph.output))
        for data in sorted(folder.glob("test_data_set_*"))
    )
    return Case(folder.name, kind, content, data_sets, settings.get("rtol", 1e-3), settings.get("atol", 1e-7))


def light_cases(data: Path) -> Iterator[Case]:
    """Whole networks whose weights are made by ConstantOfShape; inputs as the suite's own runner makes them."""
    for path in sorted((data / "light").glob("*.onnx")):
        content = path.read_bytes()
        graph = onnx.load_from_string(content).graph
        settings = json.loads((data / "real" / path.stem.replace("light_", "test_") / "data.json").read_text())
        inputs: list[Value] = []
        for name in input_names(graph):
            described = next(i for i in graph.input if i.name == name)
            shape = [d.dim_value or 1 for d in described.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            inputs.append((np.arange(count).reshape(shape) / count).astype(np.float32))
        outputs = [
            numpy_helper.to_array(onnx.load_tensor(str(path.with_name(f"{path.stem}_output_{i}.pb"))))
            for i in range(len(graph.output))
        ]
        yield Case(path.stem, "light", content, ((tuple(inputs), tuple(outputs)),), settings["rtol"], settings["atol"])


def load_values(folder: Path, prefix: str, described: Sequence[onnx.ValueInfoProto]) -> tuple[Value, ...]:
    count = len(list(folder.glob(f"{prefix}_*.pb")))
    return tuple(load_value(folder / f"{prefix}_{i}.pb", described[i].type) for i in range(count))


def load_value(path: Path, kind: onnx.TypeProto) -> Value:
    content = path.read_bytes()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def plain(value: Any) -> Value:
    """The suite's cases hold arrays, scalars, protobuf tensors and lists of them: one shape for all."""
    if value is None:
        return None
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return np.asarray(value)


def input_names(graph: onnx.GraphProto) -> list[str]:
    """The inputs a caller must give: old models list their initializers as inputs too."""
    known = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    return [i.name for i in graph.input if i.name not in known]


def is_random(model: onnx.ModelProto) -> bool:
    """Whether values may differ between two correct runs; then only shapes and dtypes can be compared."""

    def nodes(found: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
        for node in found:
            yield node
            for attribute in node.attribute:
                yield from nodes(attribute.g.node)
                for graph in attribute.graphs:
                    yield from nodes(graph.node)

    bodies = [model.graph.node, *(f.node for f in model.functions)]
    # Dropout's third input is training_mode; without it the operator is the identity.
    return any(
        n.op_type in RANDOM or (n.op_type == "Dropout" and len(n.input) > 2) for body in bodies for n in nodes(body)
    )


def run(model: bytes, data_sets: Sequence[DataSet]) -> list[list[Value]]:
    """What onnxruntime answers for each data set, at full optimization as a user would have it."""
    import onnxruntime as ort  # costs a second, and only the workers need it

    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    graph = onnx.load_from_string(model).graph
    try:
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return [run_once(session, graph, inputs) for inputs, _ in data_sets]
    except Exception as error:
        raise NotRun(" ".join(str(error).split())) from error


def run_once(session: Any, graph: onnx.GraphProto, inputs: Sequence[Value]) -> list[Value]:
    names = input_names(graph)
    if len(names) < len(inputs):
        names = [i.name for i in graph.input]  # the case overrides initializers
    types = {i.name: i.type for i in graph.input}
    feeds = {name: feed(value, types[name]) for name, value in zip(names, inputs, strict=False)}
    if not any(has_no_numpy_type(o.type) for o in graph.output):
        return [plain(v) for v in session.run(None, feeds)]
    import onnxruntime as ort

    values = {n: v if isinstance(v, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(v) for n, v in feeds.items()}
    return [fetch(v) for v in session.run_with_ort_values(None, values)]


def has_no_numpy_type(kind: onnx.TypeProto) -> bool:
    element = kind.tensor_type.elem_type
    return kind.HasField("tensor_type") and (element == onnx.TensorProto.BFLOAT16 or element >= 17)


def feed(value: Value, kind: onnx.TypeProto) -> Value:
    """Arrays of types numpy has go in as they are; the others as an OrtValue over their bytes."""
    if not isinstance(value, np.ndarray) or not has_no_numpy_type(kind):
        return value
    import onnxruntime as ort

    packed = np.frombuffer(numpy_helper.from_array(value).raw_data, dtype=np.uint8)
    if value.dtype.itemsize == 1:
        # Four-bit and two-bit types fill only the head of the buffer; its shape is the tensor's.
        buffer = np.zeros(value.size, dtype=np.uint8)
        buffer[: packed.size] = packed
    else:
        buffer = packed.view(f"u{value.dtype.itemsize}").copy()
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(buffer.reshape(value.shape), kind.tensor_type.elem_type)


def fetch(value: Any) -> Value:
    """The array in an OrtValue, also of a type that onnxruntime has no numpy type for."""
    if not value.is_tensor():
        raise NotRun("a sequence or optional beside a type numpy lacks cannot be read back")
    if value.element_type() != onnx.TensorProto.BFLOAT16 and value.element_type() < 17:
        return value.numpy()
    content = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    tensor = onnx.TensorProto(data_type=value.element_type(), dims=value.shape(), raw_data=content)
    return numpy_helper.to_array(tensor)


def against_suite(expected: Sequence[Value], found: Sequence[Value], rtol: float, atol: float, random: bool) -> str:
    """Empty when `found` is what the suite expects, else what differs. Tolerances are the suite's."""

    def close(a: np.ndarray, b: np.ndarray) -> bool:
        # Two units in the last place of bfloat16, as in the suite's own runner.
        relative = max(rtol, 2**-6) if a.dtype.name == "bfloat16" else rtol
        return bool(np.allclose(widen(b), widen(a), rtol=relative, atol=atol, equal_nan=True))

    return difference(expected, found, close, random)


def against_original(before: Sequence[Value], after: Sequence[Value], random: bool) -> str:
    """Empty when the candidate answers what the original did, else what differs."""

    def close(a: np.ndarray, b: np.ndarray) -> bool:
        tolerance = SAME.get(a.dtype.name)
        wide_a, wide_b = widen(a), widen(b)
        if tolerance is None:
            return bool(np.array_equal(wide_a, wide_b, equal_nan=wide_a.dtype.kind in "fc"))
        finite = np.abs(wide_a[np.isfinite(wide_a)])
        scale = float(finite.max()) if finite.size else 0.0
        return bool(np.allclose(wide_b, wide_a, rtol=tolerance, atol=tolerance * scale, equal_nan=True))

    return difference(before, after, close, random)


def widen(array: np.ndarray) -> np.ndarray:
    """numpy cannot promote the small float types itself."""
    if array.dtype.kind == "V" or array.dtype.name in ("bfloat16", "float16", "float32") or is_small(array.dtype):
        return array.astype(np.float64)
    return array


def is_small(dtype: np.dtype) -> bool:
    return dtype.name.startswith(("float8", "float4", "int4", "uint4", "int2", "uint2"))


def difference(expected: Sequence[Value], found: Sequence[Value], close: Any, random: bool) -> str:
    if len(expected) != len(found):
        return f"{len(found)} values instead of {len(expected)}"
    for index, (a, b) in enumerate(zip(expected, found, strict=True)):
        reason = value_difference(a, b, close, random)
        if reason:
            return f"output {index}: {reason}"
    return ""


def value_difference(a: Value, b: Value, close: Any, random: bool) -> str:
    if isinstance(a, list) or isinstance(b, list):
        if not (isinstance(a, list) and isinstance(b, list)):
            return f"a {type(b).__name__} instead of a {type(a).__name__}"
        return difference(a, b, close, random)
    if a is None or b is None:
        return "" if a is b else "one is an empty optional"
    if a.shape != b.shape:
        return f"shape {b.shape} instead of {a.shape}"
    if a.dtype.kind in "OUS" or b.dtype.kind in "OUS":  # strings: object on one side, fixed width on the other
        return "" if random or a.astype(str).tolist() == b.astype(str).tolist() else "strings differ"
    if a.dtype != b.dtype:
        return f"dtype {b.dtype} instead of {a.dtype}"
    return "" if random or close(a, b) else f"values of {a.dtype} differ"
